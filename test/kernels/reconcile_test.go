package kernels

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
)

// The bounds of what both ways need not tell alike.
const (
	// apart is how much longer a wait is in the eyes of one probe than of the other: their programs run one after another.
	apart = 20 * time.Microsecond
	// offCPU is more than a thread is kept from a CPU by others in the machine; 9 ms was seen.
	offCPU = 50 * time.Millisecond
)

// leasts are how long waits take that are told: below, one clock may say so and the other not.
func least(kind event.WaitKind) time.Duration {
	switch kind {
	case event.WaitPoll, event.WaitCall:
		return time.Millisecond
	case event.WaitMutex:
		return 100 * time.Microsecond
	case event.WaitSleep: // Go's own, which are not told, take up to 10 ms (SYSMON_MAX)
		return 10500 * time.Microsecond
	}
	return 0
}

// reconcile leaves out of what was told in both ways what is not determined, each for the reason in docs/contributing/kernels.md
// ("Two ways") or at the bounds above. both are the waits that were told in both ways, left those that were left out.
func reconcile(byFunctions, bySystemCalls []event.Event) (a, b []event.Event, both, left int) {
	for _, e := range byFunctions {
		if w, is := e.Body.(*event.Wait); is {
			other := told(w, e.Time, bySystemCalls)
			if told(w, e.Time, a) || !other && took(w, e.Time) < least(w.Kind)+apart { // a call that waits twice is told twice
				left++
				continue
			}
			if other {
				both++
			}
		}
		a = determined(a, e)
	}
	for _, e := range bySystemCalls {
		if w, is := e.Body.(*event.Wait); is && !told(w, e.Time, byFunctions) &&
			(took(w, e.Time) < least(w.Kind)+apart || idle(w, e.Time)) {
			left++
			continue
		}
		b = determined(b, e)
	}
	over := event.Event{Time: max(a[len(a)-1].Time, b[len(b)-1].Time) + int64(time.Minute), Body: &event.Tick{}}
	return append(a, over), append(b, over), both, left
}

// idle reports whether a system call may not have waited at all, but worked or was kept from a CPU: functions do not
// tell of that.
func idle(w *event.Wait, at int64) bool {
	return (w.Kind == event.WaitPoll || w.Kind == event.WaitCall) && took(w, at) < offCPU
}

func took(w *event.Wait, at int64) time.Duration { return time.Duration(w.Until(at) - w.Start) }

// told reports whether a wait that was told at some time is among other events, too: the same thread in the same system
// call, at the same time.
func told(w *event.Wait, at int64, among []event.Event) bool {
	return slices.ContainsFunc(among, func(e event.Event) bool {
		o, is := e.Body.(*event.Wait)
		return is && o.Process == w.Process && o.Thread == w.Thread && o.Kind == w.Kind && o.Name == w.Name &&
			o.Start < w.Until(at) && w.Start < o.Until(e.Time)
	})
}

// determined adds an event without what each probe's reader finds at a time of its own: how far the time is, and what
// an agent was doing.
func determined(all []event.Event, e event.Event) []event.Event {
	switch b := e.Body.(type) {
	case *event.Tick:
		return all
	case *event.Agent:
		e.Body = &event.Agent{Process: b.Process, PID: b.PID, Name: b.Name, Hidden: b.Hidden, Over: b.Over, Programs: b.Programs}
	}
	return append(all, e)
}

// leaveOut leaves out ioctls that the other way does not tell where that many of its programs were not run, and no more,
// and what is told of waiting in them.
func leaveOut(events, others []event.Event, missed int) []event.Event {
	var out []event.Event
	others = slices.Clone(others)
	kept := slices.DeleteFunc(slices.Clone(events), func(e event.Event) bool {
		r, is := e.Body.(*event.Request)
		if !is || r.Protocol != "ioctl" {
			return false
		}
		if i := asked(r, e.Time, others); i >= 0 { // each is the same as one
			others = slices.Delete(others, i, i+1)
			return false
		}
		if len(out) == missed {
			return false
		}
		out = append(out, e)
		return true
	})
	return slices.DeleteFunc(kept, func(e event.Event) bool {
		w, is := e.Body.(*event.Wait)
		return is && w.Kind == event.WaitCall && slices.ContainsFunc(out, func(o event.Event) bool {
			r := o.Body.(*event.Request)
			return r.Process == w.Process && r.Thread == w.Thread && r.Start < w.Until(e.Time) && w.Start < o.Time
		})
	})
}

// asked is where a request that was told at some time is among other events; -1 if it is not.
func asked(r *event.Request, at int64, among []event.Event) int {
	return slices.IndexFunc(among, func(e event.Event) bool {
		o, is := e.Body.(*event.Request)
		return is && o.Process == r.Process && o.Thread == r.Thread && o.Name == r.Name && o.Start < at && r.Start < e.Time
	})
}

// missedBy is how many runs of a way's programs were missed, as the machine says.
func missedBy(way string, said []string) (all int) {
	for _, line := range said {
		var n int
		if _, after, is := strings.Cut(line, ", by "+way+", "); is {
			_, _ = fmt.Sscanf(after, "%d times", &n)
		}
		all += n
	}
	return all
}
