package nri

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

func TestWhatPluginsDidBetweenTwoLooks(t *testing.T) {
	other := func(pid uint32, wrote uint64) Other {
		return Other{Actor: event.Actor{PID: pid}, Wrote: wrote}
	}
	alive := func(o Other) bool { return o.PID == 4 }
	before := []Other{other(1, 10), other(2, 10), other(3, 10), other(4, 10)}
	got := map[uint32]event.AgentState{}
	for _, p := range compare(before, []Other{other(1, 10), other(2, 11), other(5, 1)}, alive) {
		got[p.PID] = p.State
	}
	want := map[uint32]event.AgentState{1: "", 2: event.NRIAnswered, 3: event.NRIExited, 4: event.NRICut, 5: ""}
	harness.Equal(t, len(got), len(want), "plugins")
	for pid, state := range want {
		harness.Equal(t, got[pid], state, "plugin", pid)
	}
	for _, p := range compare(nil, before, alive) {
		harness.Equal(t, p.State, "", "without an earlier look")
	}
}

// A report may be read before the step that it follows.
func TestOnlyADelayedSandboxIsLookedAt(t *testing.T) {
	looks := make(chan struct{}, 8)
	p := New(Options{Plugins: func(int) []Other { looks <- struct{}{}; return []Other{{}} }})
	p.connected.Store(true)
	p.take("early")
	p.Await("early")
	p.Await("quick")
	p.take("quick")
	p.Await("late")
	<-looks
	harness.Until(t, "the look is kept", func() bool {
		p.awaited.mu.Lock()
		defer p.awaited.mu.Unlock()
		return len(p.awaited.seen["late"]) == 1
	})
	harness.Equal(t, len(p.take("late")), 1, "plugins seen")
	harness.Equal(t, len(looks), 0, "more looks")
}
