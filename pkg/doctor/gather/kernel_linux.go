package gather

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// lockdownFile exists only if securityfs is mounted.
const lockdownFile = "/sys/kernel/security/lockdown"

// connectorFile exists only in the node's own network namespace.
const connectorFile = "/proc/net/connector"

// connector returns why the process connector is unusable, or "".
func connector() string {
	pids, err1 := procfs.OwnNamespace("pid")
	users, err2 := procfs.OwnNamespace("user")
	told, _ := os.ReadFile(connectorFile)
	switch {
	case err1 != nil || pids != procfs.InitialPID:
		return "it needs the node's own PID namespace"
	case err2 != nil || users != procfs.InitialUser:
		return "it needs the node's own user namespace"
	case !strings.Contains(string(told), "cn_proc"):
		return "it needs the node's own network namespace, and a kernel built with CONFIG_PROC_EVENTS"
	case len(lacking(unix.CAP_NET_ADMIN)) > 0:
		return "it needs CAP_NET_ADMIN"
	}
	return ""
}

var features = []fact.Feature{
	{Name: "sched_process_exec", For: "plugins are not seen", Needed: true},
	{Name: "sched_process_fork", For: "plugins are not followed", Needed: true},
	{Name: "sched_process_exit", For: "the end of plugins is not seen", Needed: true},
	{Name: "sys_enter", For: "system calls of plugins are not traced"},
	{Name: "sys_exit", For: "durations of system calls are not traced"},
	{Name: "contention_begin", For: "waits for kernel locks are not traced (Linux 5.19)"},
	{Name: "inet_sock_set_state", For: "connections to agents are not timed"},
}

func kernelFeatures(context.Context) (fact.Kernel, error) {
	k := fact.Kernel{Lockdown: lockdown(), Lacking: lacking(unix.CAP_BPF, unix.CAP_PERFMON), Connector: connector()}
	if _, err := procfs.Namespace(1, "net"); err != nil {
		k.First = fact.Clean(err.Error())
	}
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		k.Release = fact.Clean(unix.ByteSliceToString(name.Release[:]))
	}
	spec, err := btf.LoadKernelSpec()
	if err != nil {
		k.BTF = fact.Clean(err.Error())
		return k, nil
	}
	k.Functions = fact.Clean(kernel.NoFunctions(spec))
	for _, f := range features {
		_, err := spec.AnyTypesByName("btf_trace_" + f.Name)
		f.There = err == nil
		f.Name = "the tracepoint " + f.Name
		k.Features = append(k.Features, f)
	}
	k.Features = append(k.Features, fact.Feature{
		Name: "BPF ring buffers", For: "no BPF program can be loaded (Linux 5.8)", Needed: true, There: ringBuffer(spec),
	})
	return k, nil
}

func ringBuffer(spec *btf.Spec) bool {
	var types *btf.Enum
	return spec.TypeByName("bpf_map_type", &types) == nil &&
		slices.ContainsFunc(types.Values, func(v btf.EnumValue) bool { return v.Name == "BPF_MAP_TYPE_RINGBUF" })
}

func lockdown() string {
	text, err := os.ReadFile(lockdownFile)
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(text), "[")
	mode, _, _ := strings.Cut(rest, "]")
	return fact.Clean(mode)
}

func lacking(wanted ...int) (names []string) {
	have := effective()
	if have&(1<<unix.CAP_SYS_ADMIN) != 0 {
		have |= 1<<unix.CAP_BPF | 1<<unix.CAP_PERFMON // it stands for both
	}
	for _, c := range wanted {
		if have&(1<<c) == 0 {
			names = append(names, capabilities[c])
		}
	}
	return names
}

var capabilities = map[int]string{
	unix.CAP_SYS_PTRACE: "CAP_SYS_PTRACE", unix.CAP_BPF: "CAP_BPF",
	unix.CAP_PERFMON: "CAP_PERFMON", unix.CAP_NET_ADMIN: "CAP_NET_ADMIN",
}

func effective() uint64 {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var halves [2]unix.CapUserData
	if unix.Capget(&header, &halves[0]) != nil {
		return 0
	}
	return uint64(halves[1].Effective)<<32 | uint64(halves[0].Effective)
}

// clockState sets nothing, because Modes is 0.
func clockState(context.Context) (fact.Clock, error) {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	if err != nil {
		return fact.Clock{}, fmt.Errorf("adjtimex: %w", err)
	}
	return fact.Clock{
		Synchronised: state != unix.TIME_ERROR && t.Status&unix.STA_UNSYNC == 0,
		MaxError:     time.Duration(t.Maxerror) * time.Microsecond,
	}, nil
}

func born(path string) time.Time {
	var s unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_BTIME, &s) != nil || s.Mask&unix.STATX_BTIME == 0 {
		return time.Time{}
	}
	return time.Unix(s.Btime.Sec, int64(s.Btime.Nsec))
}
