package gather

import (
	"context"
	"os"
	"strings"

	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
)

// lockdownFile says how much root may do; it is there where securityfs is.
const lockdownFile = "/sys/kernel/security/lockdown"

// wanted are the tracepoints of the probe, as they are known to BTF: btf_trace_NAME.
func wanted() []fact.Feature {
	return []fact.Feature{
		{Name: "sched_process_exec", For: "plugins are not seen", Needed: true},
		{Name: "sched_process_fork", For: "plugins are not followed", Needed: true},
		{Name: "sched_process_exit", For: "the end of plugins is not seen", Needed: true},
		{Name: "sys_enter", For: "what plugins ask the kernel for is not seen"},
		{Name: "sys_exit", For: "how long the kernel takes is not seen"},
		{Name: "contention_begin", For: "waiting for locks of the kernel is not seen (Linux 5.19)"},
		{Name: "inet_sock_set_state", For: "connections to agents are not timed"},
	}
}

// kernelFeatures reads what the kernel tells of itself. It loads nothing.
func kernelFeatures(context.Context) (fact.Kernel, error) {
	k := fact.Kernel{Lockdown: lockdown(), Lacking: lacking(unix.CAP_BPF, unix.CAP_PERFMON)}
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		k.Release = fact.Clean(unix.ByteSliceToString(name.Release[:]))
	}
	spec, err := btf.LoadKernelSpec()
	if err != nil {
		k.BTF = fact.Clean(err.Error())
		return k, nil
	}
	for _, f := range wanted() {
		_, err := spec.AnyTypesByName("btf_trace_" + f.Name)
		f.There = err == nil
		f.Name = "the tracepoint " + f.Name
		k.Features = append(k.Features, f)
	}
	k.Features = append(k.Features, fact.Feature{
		Name: "BPF ring buffers", For: "nothing is seen (Linux 5.8)", Needed: true, There: ringBuffer(spec),
	})
	return k, nil
}

func ringBuffer(spec *btf.Spec) bool {
	var types *btf.Enum
	if spec.TypeByName("bpf_map_type", &types) != nil {
		return false
	}
	for _, v := range types.Values {
		if v.Name == "BPF_MAP_TYPE_RINGBUF" {
			return true
		}
	}
	return false
}

// lockdown is the mode in brackets; empty where there is none.
func lockdown() string {
	text, err := os.ReadFile(lockdownFile)
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(text), "[")
	mode, _, _ := strings.Cut(rest, "]")
	return fact.Clean(mode)
}
