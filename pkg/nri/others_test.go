package nri

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cniscope/cniscope/pkg/clock"
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

// A plugin that is cut off reads and writes once more, which answers nothing.
func TestWhatACutOffPluginDoesAtItsEndIsNoAnswer(t *testing.T) {
	for last, want := range map[int]int64{3: 7, 2: 90} {
		l := &looks{n: 3, plugins: map[uint32]*looked{1: {since: 5, before: 7, at: 90, last: last}}}
		l.end(nil, func(Other) bool { return false }, 0)
		harness.Equal(t, l.since, want, "since, if it was last seen to do something in look", last)
	}
}

// A look precedes every call if plugins neither read nor wrote since the ADD, and have nothing to read.
func TestTheLastLookBeforeACall(t *testing.T) {
	idle, asked, unread, answered, other := Other{Read: 5, Wrote: 10}, Other{Read: 6, Wrote: 10}, Other{Read: 5, Wrote: 10, Unread: true},
		Other{Read: 5, Wrote: 11}, Other{Actor: event.Actor{PID: 1}}
	for name, c := range map[string]struct {
		looks  []Other
		last   Other
		change func(p *Plugin, l *looks)
		want   bool
	}{
		"called after all":        {looks: []Other{idle, idle, idle}, last: asked, want: true},
		"called between":          {looks: []Other{idle, idle, asked}, last: asked, want: true},
		"reads uncounted":         {looks: []Other{idle, idle}, last: idle},
		"called at once":          {looks: []Other{idle, asked, asked}, last: asked},
		"has a request to read":   {looks: []Other{idle, unread, unread}, last: asked},
		"answers an earlier call": {looks: []Other{idle, idle}, last: answered},
		"is lost":                 {looks: []Other{idle, idle}, last: other},
		"no look at the ADD":      {looks: []Other{idle, idle}, last: asked, change: func(_ *Plugin, l *looks) { l.delayed = true }},
		"another sandbox starts":  {looks: []Other{idle, idle}, last: asked, change: func(p *Plugin, _ *looks) { p.awaited.seen["two"] = &looks{} }},
	} {
		t.Run(name, func(t *testing.T) {
			var now Other
			p, l := New(Options{Plugins: func(int) ([]Other, bool) { return []Other{now}, true }}), &looks{}
			p.awaited.seen["one"] = l
			if c.change != nil {
				c.change(p, l)
			}
			for _, now = range c.looks {
				p.look(func(one *looks) bool { return one == l })
				l.delayed = true
			}
			l.end([]Other{c.last}, func(Other) bool { return true }, 0)
			harness.Equal(t, l.quiet != 0, c.want, "a look precedes it")
		})
	}
}

// A report may be read before the step that it follows.
func TestOnlyADelayedSandboxIsLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		p := New(Options{Plugins: func(int) ([]Other, bool) { looks++; return []Other{{}}, true }})
		p.connected.Store(true)
		p.take("early", true)
		p.Awake("early")
		p.Await("early")
		p.Await("early")
		p.Await("quick")
		p.take("quick", true)
		p.Await("late")
		time.Sleep(awaitedAfter)
		synctest.Wait()
		harness.Equal(t, looks, 1, "looks")
		harness.Equal(t, len(p.take("late", true).plugins), 1, "plugins seen")
		time.Sleep(awaitedAfter)
		p.Awake("ordinary")
		time.Sleep(10 * awaitedAfter)
		synctest.Wait()
		harness.Equal(t, looks, 2, "looks after it was reported, and one before another is")
		harness.Equal(t, p.take("ordinary", true).late, false, "late")
	})
}

// A plugin that registers just after a look found none is seen soon enough to be late.
func TestAPluginThatRegistersLateIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var plugins []Other
		p := New(Options{Plugins: func(int) ([]Other, bool) { return plugins, true }})
		p.connected.Store(true)
		p.Awake("before")
		synctest.Wait()
		plugins = []Other{{}}
		p.Removing("pod")
		time.Sleep(3 * awaitedAfter)
		synctest.Wait()
		harness.Equal(t, len(p.take(string(event.SandboxRemoved)+"pod", false).plugins), 1, "plugins seen")
		p.take("before", false)
	})
}

func TestOneLookServesABurst(t *testing.T) {
	for name, plugins := range map[string][]Other{"beside a plugin": {{}}, "beside none": nil} {
		synctest.Test(t, func(t *testing.T) {
			looks := 0
			p := New(Options{Plugins: func(int) ([]Other, bool) { looks++; return plugins, true }})
			p.connected.Store(true)
			want := 30 + 1
			if plugins == nil {
				want = 1
			}
			for i := range 30 {
				p.Awake(fmt.Sprint(i))
				synctest.Wait()
				time.Sleep(time.Microsecond)
				p.Await(fmt.Sprint(i))
			}
			time.Sleep(awaitedAfter)
			synctest.Wait()
			harness.Equal(t, looks, want, name)
			since := clock.Monotonic()
			for range 2 {
				time.Sleep(time.Microsecond)
				_, _, _ = p.others(since)
				harness.Equal(t, looks, want+1, "for reports before it")
			}
			for i := range 30 {
				p.take(fmt.Sprint(i), false)
			}
		})
	}
}

func TestALookThatFailsOrIsDroppedIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(Options{Plugins: func(int) ([]Other, bool) { return nil, false }})
		p.connected.Store(true)
		p.Awake("failing")
		synctest.Wait()
		for i := range awaitedMax {
			p.Await(fmt.Sprint(i))
		}
		harness.Equal(t, p.Counts().Unlooked, 1+awaitedMax, "looks")
		time.Sleep(looksMax * awaitedAfter)
	})
}
