package probe

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

func init() { acts["programs"] = programs }

// programs loads a program and a map, attaches programs to lo and to a cgroup, and loads an invalid one.
func programs(cgroup string) error {
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return err
	}
	load := func(name string, kind ebpf.ProgramType, code ...asm.Instruction) (*ebpf.Program, error) {
		return ebpf.NewProgram(&ebpf.ProgramSpec{Name: name, Type: kind, License: "GPL", Instructions: code})
	}
	_, err := load("refused", ebpf.SchedCLS, asm.Return())
	var refused *ebpf.VerifierError
	if !errors.As(err, &refused) {
		return fmt.Errorf("a program without a result: %w", err)
	}
	filter, err := load("on_interface", ebpf.SchedCLS, asm.Mov.Imm(asm.R0, 0), asm.Return())
	if err != nil {
		return err
	}
	defer filter.Close()
	l, err := link.AttachTCX(link.TCXOptions{Interface: 1, Program: filter, Attach: ebpf.AttachTCXIngress})
	if err != nil {
		return err
	}
	if err := errors.Join(l.Update(filter), l.Close()); err != nil {
		return err
	}
	socket, err := load("on_cgroup", ebpf.CGroupSock, asm.Mov.Imm(asm.R0, 1), asm.Return())
	if err != nil {
		return err
	}
	defer socket.Close()
	l, err = link.AttachCgroup(link.CgroupOptions{Path: cgroup, Attach: ebpf.AttachCGroupInetSockCreate, Program: socket})
	if err != nil {
		return err
	}
	return l.Close()
}

func TestProgramsAreSeenWithWhatTheyAreAttachedTo(t *testing.T) {
	harness.Root(t)
	root := t.TempDir()
	if err := unix.Mount("cgroup2", root, "cgroup2", 0, ""); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(root, unix.MNT_DETACH) })
	cgroup := harness.Must(os.MkdirTemp(root, "cniscope-test-"))(t)
	t.Cleanup(func() { _ = os.Remove(cgroup) })
	o := run(t, acting(t, "programs", cgroup))
	var got []string
	for _, q := range all[*event.Request](o) {
		if q.Protocol != "bpf" || q.Object == event.ObjectMap || strings.HasPrefix(q.Program, "feature") || q.Program == "probe" {
			continue
		}
		if q.Error != "" && q.Program == "" { // the module's feature tests
			continue
		}
		line := fmt.Sprintf("%s %s %s", q.Name, q.Program, q.Type)
		if q.Interface.Index != 0 {
			line += fmt.Sprintf(" on %d %s", q.Interface.Index, q.Interface.Name)
			if q.NetNS.Key == "" || q.NetNS.Key == q.NetNS.Label {
				t.Errorf("in no namespace: %+v", q)
			}
		}
		if q.Path != "" && strings.Count(q.Path, "/") == strings.Count(cgroup, "/") { // random names are redacted
			line += " on a cgroup"
		}
		if q.Error != "" {
			line += " " + q.Error
		}
		got = append(got, line)
	}
	for _, want := range []string{
		"BPF_PROG_LOAD refused sched_cls EACCES",
		"BPF_LINK_CREATE on_interface tcx_ingress on 1 lo",
		"BPF_LINK_UPDATE on_interface  on 1 lo",
		"BPF_LINK_CREATE on_cgroup cgroup_inet_sock_create on a cgroup",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is not among\n%s", want, strings.Join(got, "\n"))
		}
	}
}
