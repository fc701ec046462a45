package kernels

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
)

// Tolerances between both ways.
const (
	// apart is the additional duration of a wait for the second probe.
	apart = 20 * time.Microsecond
	// offCPU exceeds a thread's preemption in the machine; 9 ms was observed.
	offCPU = 50 * time.Millisecond
)

// least is the minimum duration of a reported wait; below it clocks disagree.
func least(kind event.WaitKind) time.Duration {
	switch kind {
	case event.WaitPoll, event.WaitCall:
		return time.Millisecond
	case event.WaitMutex:
		return 100 * time.Microsecond
	case event.WaitSleep: // unreported sleeps of Go last up to 10 ms (SYSMON_MAX)
		return 10500 * time.Microsecond
	}
	return 0
}

// reconcile removes undetermined events, for the reasons in docs/contributing/kernels.md ("Two ways") or within the
// tolerances. both counts common waits, left removed ones.
func reconcile(byFunctions, bySystemCalls []event.Event) (a, b []event.Event, both, left int) {
	for _, e := range byFunctions {
		if w, is := e.Body.(*event.Wait); is {
			other := told(w, e.Time, bySystemCalls)
			if told(w, e.Time, a) || !other && took(w, e.Time) < least(w.Kind)+apart { // a call with two waits is reported twice
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

// idle reports whether a system call may have worked or been preempted, not waited.
func idle(w *event.Wait, at int64) bool {
	return (w.Kind == event.WaitPoll || w.Kind == event.WaitCall) && took(w, at) < offCPU
}

func took(w *event.Wait, at int64) time.Duration { return time.Duration(w.Until(at) - w.Start) }

// told reports whether other events have this wait: same thread, system call and time.
func told(w *event.Wait, at int64, among []event.Event) bool {
	return slices.ContainsFunc(among, func(e event.Event) bool {
		o, is := e.Body.(*event.Wait)
		return is && o.Process == w.Process && o.Thread == w.Thread && o.Kind == w.Kind && o.Name == w.Name &&
			o.Start < w.Until(at) && w.Start < o.Until(e.Time)
	})
}

// determined appends an event, without those of each probe's own timing: ticks and agent states.
func determined(all []event.Event, e event.Event) []event.Event {
	switch b := e.Body.(type) {
	case *event.Tick:
		return all
	case *event.Agent:
		e.Body = &event.Agent{Process: b.Process, PID: b.PID, Name: b.Name, Hidden: b.Hidden, Over: b.Over, Programs: b.Programs}
	}
	return append(all, e)
}

// leaveOut removes up to missed ioctls that the other way lacks, and their waits.
func leaveOut(events, others []event.Event, missed int) []event.Event {
	var out []event.Event
	others = slices.Clone(others)
	kept := slices.DeleteFunc(slices.Clone(events), func(e event.Event) bool {
		r, is := e.Body.(*event.Request)
		if !is || r.Protocol != "ioctl" {
			return false
		}
		if i := asked(r, e.Time, others); i >= 0 { // each matches once
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

// asked returns the index of a request among other events, or -1.
func asked(r *event.Request, at int64, among []event.Event) int {
	return slices.IndexFunc(among, func(e event.Event) bool {
		o, is := e.Body.(*event.Request)
		return is && o.Process == r.Process && o.Thread == r.Thread && o.Name == r.Name && o.Start < at && r.Start < e.Time
	})
}

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
