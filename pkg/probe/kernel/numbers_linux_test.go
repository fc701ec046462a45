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
	spec := harness.Must(LoadLife())(t)
	own := harness.Must(procfs.OwnNamespace("pid"))(t)
	harness.Check(t, spec.Variables["pid_ns"].Set(own))
	s := &Side{}
	defer func() { _ = s.Close(0) }()
	harness.Check(t, s.openNumbers(takeNumbers(spec)))
	keys := harness.Must(s.Numbers())(t)
	if !slices.ContainsFunc(keys, func(k Key) bool {
		return k.Pid == uint32(os.Getpid()) && k.Tgid != 0 && procfs.Alive(int(k.Pid), int64(k.Start))
	}) {
		t.Errorf("we, %d, are not among %v", os.Getpid(), keys)
	}
}
