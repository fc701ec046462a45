package probe

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

func TestShortQuestionsAreCountedAndChangesTold(t *testing.T) {
	harness.Root(t)
	cmd := plugin(t, "asking", "ip link show dev lo >/dev/null; ip link add br9 type bridge; ip -o addr >/dev/null")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	o := observeProbe(t, Options{Detail: DetailAlways, MinSpan: time.Second}, func(*Probe, *observed) {
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	asked := map[event.Process]uint64{}
	for _, q := range all[*event.Questions](o) {
		if q.Took <= 0 {
			t.Errorf("%d questions took %d ns", q.Count, q.Took)
		}
		asked[q.Process] += q.Count
	}
	requests := all[*event.Request](o)
	if !slices.ContainsFunc(requests, func(q *event.Request) bool { return q.Name == "RTM_NEWLINK" && q.Verb == event.VerbAdd }) {
		t.Errorf("the bridge was not told of: %d requests", len(requests))
	}
	told := 0
	for _, q := range requests {
		if q.Query() && q.Name != "RTM_NEWLINK" { // ip probes the kernel in this way
			told++
		}
	}
	if len(asked) < 2 || told > len(asked) { // one may have lasted a millisecond
		t.Errorf("counted for %d processes, and %d told", len(asked), told)
	}
}
