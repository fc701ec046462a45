package judge

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/test/harness"
)

func TestTheWayBackFromAnAnswer(t *testing.T) {
	at := func(start, end int64) step { return step{Interval: model.Interval{Start: start, End: end}} }
	certain := func(s step) step { s.certain = true; return s }
	held := func(s step) step { s.held = true; return s }
	filler := func(s step) step { s.filler = true; return s }
	for name, test := range map[string]struct {
		steps []step
		want  string // of each step
	}{
		"one":                                    {[]step{at(10, 90)}, "10-90"},
		"several one after another":              {[]step{at(10, 20), at(20, 50), at(60, 90)}, "10-20 20-50 60-90"},
		"however they are told":                  {[]step{at(60, 90), at(10, 20), at(20, 50)}, "60-90 10-20 20-50"},
		"a computation between them is no step":  {[]step{at(0, 5), at(70, 90)}, "0-5 70-90"},
		"a subscription that goes on":            {[]step{at(5, 120), at(10, 90)}, "- 10-90"},
		"a subscription that ended amid a wait":  {[]step{at(5, 60), at(10, 90)}, "- 10-90"},
		"heartbeats during a wait":               {[]step{at(10, 90), at(20, 21), at(40, 41), at(60, 61)}, "10-90 - - -"},
		"a heartbeat just before the answer":     {[]step{at(10, 90), at(97, 98)}, "10-90 97-98"},
		"one that began before a call":           {[]step{at(-50, 90)}, "0-90"},
		"what was over before the call":          {[]step{at(-50, -10), at(-10, 0)}, "- -"},
		"of two side by side the last":           {[]step{at(10, 80), at(30, 90)}, "- 30-90"},
		"two that end together: the longer":      {[]step{at(30, 90), at(10, 90)}, "- 10-90"},
		"what led to the second of two":          {[]step{at(0, 30), at(10, 80), at(30, 90)}, "0-30 - 30-90"},
		"certain work goes before":               {[]step{certain(at(10, 80)), at(20, 90)}, "10-80 -"},
		"but not before what it is little of":    {[]step{certain(at(70, 80)), at(20, 90)}, "- 20-90"},
		"pieces of certain work are one":         {[]step{certain(at(20, 50)), certain(at(40, 70)), at(20, 90)}, "- 40-70 -"},
		"a filler where nothing else is":         {[]step{filler(at(5, 95))}, "5-95"},
		"a filler beside another is none":        {[]step{at(10, 90), filler(at(20, 80))}, "10-90 -"},
		"a filler before another, and beside it": {[]step{at(50, 90), filler(at(5, 48)), filler(at(10, 70))}, "50-90 5-48 -"},
		"a stopped one, though the next began":   {[]step{held(at(10, 80)), at(70, 90)}, "10-70 70-90"},
		"or two":                                 {[]step{held(at(10, 80)), at(60, 75), at(70, 90)}, "10-70 - 70-90"},
		"control: one that goes on afterwards":   {[]step{held(at(10, 120)), at(70, 90)}, "- 70-90"},
		"none":                                   {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, i := range way(test.steps, model.Interval{Start: 0, End: 100}) {
				if i.End == i.Start {
					got = append(got, "-")
					continue
				}
				got = append(got, fmt.Sprintf("%d-%d", i.Start, i.End))
			}
			harness.Equal(t, strings.Join(got, " "), test.want)
		})
	}
}

// In any case, what counts lies within its step and the call, without overlap.
func TestTheWayIsOne(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		var steps []step
		for range random.IntN(12) {
			start := random.Int64N(140) - 20
			steps = append(steps, step{
				Interval: model.Interval{Start: start, End: start + random.Int64N(60)},
				certain:  random.IntN(5) == 0, filler: random.IntN(4) == 0, held: random.IntN(4) == 0,
			})
		}
		counts := way(steps, model.Interval{Start: 0, End: 100})
		var took int64
		for i, c := range counts {
			if c.End > c.Start && beside(steps, i) && !steps[i].certain {
				t.Fatalf("%+v counts beside certain work: %+v", steps[i], steps)
			}
			if c != (model.Interval{}) && (c.Start < steps[i].Start || (c.End != steps[i].End && !steps[i].held) || c.Start < 0 || c.End > 100) {
				t.Fatalf("%+v counts %+v", steps[i], c)
			}
			took += c.End - c.Start
		}
		if covered(counts) != took {
			t.Fatalf("some count at one instant: %+v of %+v", counts, steps)
		}
	}
}

// A recording is untrusted: many steps must not last long.
func BenchmarkWay(b *testing.B) {
	var steps []step
	for i := range int64(20000) {
		steps = append(steps, step{Interval: model.Interval{Start: 10 * i, End: 10*i + 9}, certain: i%3 == 0, filler: i%3 == 1})
	}
	for b.Loop() {
		way(steps, model.Interval{Start: 0, End: 1 << 30})
	}
}

// beside checks instant by instant whether certain work covers more than half of a step.
func beside(steps []step, i int) bool {
	var busy int64
	for at := steps[i].Start; at < steps[i].End; at++ {
		for _, s := range steps {
			if s.certain && s.Start <= at && at < s.End {
				busy++
				break
			}
		}
	}
	return busy > (steps[i].End-steps[i].Start)/2
}

// Requests from before the call have no known beginning.
func TestWaitsSinceBeforeAnybodyLooked(t *testing.T) {
	stopped := func(start, end int64) func(*model.Connection) {
		return was(event.AgentStopped, "do_signal_stop", from(start, end))
	}
	// dbd asks the stopped store at 400 ms, and has an earlier exchange with it.
	behind := func(early *model.Fact, more ...func(*model.Connection)) *model.Operation {
		late := waits("store", from(400, 970), stopped(400, 970))
		return calling(did(waits("dbd", from(10, 980), append(more, did(late, early))...)))
	}
	since := func(end int64, state ...func(*model.Connection)) *model.Fact {
		return waits("store", from(10, end), append(state, clipped)...)
	}
	rulings(t, map[string]ruling{
		"what was asked before the peer was looked at": {
			op:    behind(since(975, stopped(180, 975))),
			cause: CausePeer, says: `^965ms of 1s: plugin p waited for store \(stopped\), through agentd and dbd`, remedy: `kill -CONT`,
		},
		"which the peer never answered": {
			op:    behind(since(1200, stopped(180, 970), was(event.AgentIdle, "", from(970, 1200)))),
			cause: CausePeer, says: `^960ms of 1s: plugin p waited for store \(stopped, 2 times\), through agentd and dbd`, remedy: `kill -CONT`,
		},
		"it asked on several streams": {
			op:    behind(waits("store", from(30, 985), stopped(180, 985))),
			cause: CausePeer, says: `^940ms of 1s: plugin p waited for store \(stopped, 2 times\), through agentd and dbd`,
		},
		"until it had asked somebody else": {
			op:    behind(since(990, stopped(180, 990)), did(waits("lease", from(15, 300)))),
			cause: CausePeer, says: `^675ms of 1s: plugin p waited for store \(stopped, 2 times\), through agentd and dbd`,
		},
		"and had one short exchange with it when it was at work again": {
			op:    calling(did(waits("dbd", from(10, 990), did(waits("store", from(15, 970), stopped(15, 940)), waits("store", from(930, 980)))))),
			cause: CausePeer, says: `^965ms of 1s: plugin p waited for store \(stopped\), through agentd and dbd`,
		},
		"while it did something short itself": {
			op: calling(did(waits("dbd", from(10, 980), unasked, stopped(10, 980)),
				&model.Fact{When: from(500, 501), What: &model.Request{Request: &event.Request{Name: "RTM_SETLINK"}}, Attribution: &model.Attribution{Evidence: model.Candidate}})),
			cause: CausePeer, says: `^969ms of 1s: plugin p waited for dbd \(stopped\), through agentd`,
		},
		"control: the peer was at work first": {
			op:    behind(since(990, was(event.AgentIdle, "", from(180, 350)), stopped(350, 990))),
			cause: CausePeer, says: `^570ms of 1s: plugin p waited for store \(stopped\), through agentd and dbd`,
		},
		"control: nobody looked at it for long": {
			op:    behind(since(990, stopped(700, 990))),
			cause: CausePeer, says: `^570ms of 1s: plugin p waited for store \(stopped\), through agentd and dbd`,
		},
		"control: who asked it was busy": {
			op: behind(since(990, stopped(100, 990)), was(event.AgentRunning, "", from(10, 390)),
				func(c *model.Connection) { c.Work.CPU = 380 * ms }),
			cause: CausePeer, says: `^570ms of 1s: plugin p waited for store \(stopped\), through agentd and dbd`,
		},
		"control: it is another process that was stopped": {
			op:    behind(waits("watched", from(10, 990), stopped(180, 990), clipped)),
			cause: CausePeer, says: `^570ms of 1s: plugin p waited for store \(stopped\), through agentd and dbd`,
		},
	})
}
