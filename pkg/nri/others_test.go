package nri

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

func TestWhatPluginsDidBetweenLooks(t *testing.T) {
	other := func(pid uint32, read, wrote uint64) Other {
		return Other{Actor: event.Actor{PID: pid}, Read: read, Wrote: wrote}
	}
	alive := func(o Other) bool { return o.PID == 4 }
	for _, c := range []struct {
		name  string
		looks [][]Other
		want  map[uint32]event.AgentState
	}{
		{"without an earlier look", [][]Other{{other(1, 1, 1)}}, map[uint32]event.AgentState{1: ""}},
		{"one answers, two are lost, one comes", [][]Other{
			{other(1, 5, 10), other(2, 5, 10), other(3, 5, 10), other(4, 5, 10)},
			{other(1, 5, 10), other(2, 5, 11), other(5, 1, 1)},
		}, map[uint32]event.AgentState{1: "", 2: event.NRIAnswered, 3: event.NRIExited, 4: event.NRICut, 5: ""}},
		{"one that is called after a slow one is quick", [][]Other{
			{other(1, 5, 10), other(2, 5, 10)}, {other(1, 6, 10), other(2, 5, 10)}, {other(1, 7, 11), other(2, 6, 11)},
		}, map[uint32]event.AgentState{1: event.NRIAnswered, 2: ""}},
		{"the second is slow", [][]Other{
			{other(1, 5, 10), other(2, 5, 10)},
			{other(1, 6, 11), other(2, 6, 10)},
			{other(1, 6, 11), other(2, 6, 10)},
			{other(1, 6, 11), other(2, 6, 12)},
		}, map[uint32]event.AgentState{1: "", 2: event.NRIAnswered}},
		{"both are slow", [][]Other{
			{other(1, 5, 10), other(2, 5, 10)},
			{other(1, 6, 10), other(2, 5, 10)},
			{other(1, 6, 10), other(2, 5, 10)},
			{other(1, 6, 11), other(2, 6, 10)},
			{other(1, 6, 11), other(2, 6, 10)},
			{other(1, 6, 11), other(2, 6, 11)},
		}, map[uint32]event.AgentState{1: event.NRIAnswered, 2: event.NRIAnswered}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := &looks{late: true}
			last := len(c.looks) - 1
			for _, now := range c.looks[:last] {
				l.add(now)
			}
			got := map[uint32]event.AgentState{}
			for _, p := range l.end(c.looks[last], alive, 0) {
				got[p.PID] = p.State
			}
			harness.Equal(t, len(got), len(c.want), "plugins")
			for pid, state := range c.want {
				harness.Equal(t, got[pid], state, "plugin", pid)
			}
		})
	}
}

// A report may be read before the step that it follows.
func TestOnlyADelayedSandboxIsLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		p := New(Options{Plugins: func(int) ([]Other, bool) { looks++; return []Other{{}}, true }})
		p.connected.Store(true)
		p.take("early")
		p.Awake("early")
		p.Await("early")
		p.Await("quick")
		p.take("quick")
		p.Await("late")
		time.Sleep(awaitedAfter)
		synctest.Wait()
		harness.Equal(t, looks, 1, "looks")
		harness.Equal(t, len(p.take("late").plugins), 1, "plugins seen")
		p.Awake("ordinary")
		time.Sleep(10 * awaitedAfter)
		synctest.Wait()
		harness.Equal(t, looks, 2, "looks after it was reported, and one before another is")
		harness.Equal(t, p.take("ordinary").late, false, "late")
	})
}

func TestOneLookServesABurst(t *testing.T) {
	for name, plugins := range map[string][]Other{"beside a plugin": {{}}, "beside none": nil} {
		synctest.Test(t, func(t *testing.T) {
			looks := 0
			p := New(Options{Plugins: func(int) ([]Other, bool) { looks++; return plugins, true }})
			p.connected.Store(true)
			want := 1 + 30
			if plugins == nil {
				want = 1 + 1
			}
			for i := range 30 {
				p.Awake(fmt.Sprint(i))
				synctest.Wait()
				p.Await(fmt.Sprint(i))
			}
			time.Sleep(awaitedAfter)
			synctest.Wait()
			harness.Equal(t, looks, want, name)
			for i := range 30 {
				p.take(fmt.Sprint(i))
			}
		})
	}
}
