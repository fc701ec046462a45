package nri

import (
	"os"
	"testing"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

func TestSandboxesThatAreLateAtOnceShareAList(t *testing.T) {
	lists := 0
	p := New(Options{Plugins: func() []event.Actor {
		lists++
		return []event.Actor{{PID: uint32(lists)}}
	}})
	first := clock.Monotonic() + 2*int64(slow)
	for _, report := range []struct {
		after int64
		list  uint32
	}{{0, 1}, {int64(slow) / 2, 1}, {int64(slow) - 1, 1}, {int64(slow), 2}, {int64(slow) * 3 / 2, 2}} {
		s := &event.Sandbox{PID: uint32(os.Getpid())}
		p.late(s, first+report.after)
		if len(s.Plugins) != 1 || s.Late < int64(slow) {
			t.Fatalf("%d ns after the first: %+v", report.after, s)
		}
		harness.Equal(t, s.Plugins[0].PID, report.list, "list, ns after the first:", report.after)
	}
}
