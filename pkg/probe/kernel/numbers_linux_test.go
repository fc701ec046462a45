package kernel

import (
	"os"
	"slices"
	"testing"

	"github.com/cniscope/cniscope/pkg/procfs"
)

// A process is listed by the number that it has here, whatever it has in the initial namespace.
func TestProcessesAreListedByBothNumbers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	spec, err := LoadLife()
	if err != nil {
		t.Fatal(err)
	}
	own, err := procfs.OwnNamespace("pid")
	if err != nil {
		t.Fatal(err)
	}
	if err := spec.Variables["pid_ns"].Set(own); err != nil {
		t.Fatal(err)
	}
	s := &Side{}
	defer func() { _ = s.Close(0) }()
	if err := s.openNumbers(takeNumbers(spec)); err != nil {
		t.Fatal(err)
	}
	keys, err := s.Numbers()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(keys, func(k Key) bool {
		return k.Pid == uint32(os.Getpid()) && k.Tgid != 0 && procfs.Alive(int(k.Pid), int64(k.Start))
	}) {
		t.Errorf("we, %d, are not among %v", os.Getpid(), keys)
	}
}
