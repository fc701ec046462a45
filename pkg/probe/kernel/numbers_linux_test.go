package kernel

import (
	"os"
	"slices"
	"testing"

	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/test/harness"
)

func TestProcessesAreListedByBothNumbers(t *testing.T) {
	harness.Root(t)
	spec, err := LoadLife()
	harness.Check(t, err)
	own, err := procfs.OwnNamespace("pid")
	harness.Check(t, err)
	harness.Check(t, spec.Variables["pid_ns"].Set(own))
	s := &Side{}
	defer func() { _ = s.Close(0) }()
	harness.Check(t, s.openNumbers(takeNumbers(spec)))
	keys, err := s.Numbers()
	harness.Check(t, err)
	if !slices.ContainsFunc(keys, func(k Key) bool {
		return k.Pid == uint32(os.Getpid()) && k.Tgid != 0 && procfs.Alive(int(k.Pid), int64(k.Start))
	}) {
		t.Errorf("we, %d, are not among %v", os.Getpid(), keys)
	}
}
