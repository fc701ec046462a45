// Package traced compares plugin callers' observations with spans, in a machine whose clock was set. It is pure: the
// machine writes both.
package traced

import (
	"fmt"
	"slices"
	"time"
)

// Span is a span's identity and times, in nanoseconds since 1970.
type Span struct {
	Name, Kind, Sandbox, Trace, ID, Parent string
	Start, End                             int64
}

// Run is a called plugin from its caller's view. All times but Wall are monotonic ns.
type Run struct {
	Sandbox, Plugin string
	// Began and Ended are bounded by two instants each.
	Began, Ended [2]int64
	// Mono and Wall are one instant before the operation's first plugin.
	Mono, Wall int64
}

// Name is the run's span name.
func (r Run) Name() string { return r.Plugin + " ADD" }

// tolerance bounds the difference of clock readings; the reader may be preempted. All steps are much longer.
const tolerance = int64(time.Second)

// Compare returns mistakes: a missing or duplicate run, a wrong duration, a start that is not the operation's
// wall-clock time, and a child outside of its parent.
func Compare(runs []Run, spans []Span) (wrong []string) {
	say := func(format string, a ...any) { wrong = append(wrong, fmt.Sprintf(format, a...)) }
	byID, operations := map[string]Span{}, map[string]int{}
	for _, s := range spans {
		if _, twice := byID[s.ID]; twice {
			say("%s of %s was sent twice", s.Name, s.Sandbox)
		}
		byID[s.ID] = s
		if s.Kind == "operation" {
			operations[s.Sandbox]++
		}
	}
	for sandbox, n := range operations {
		if !slices.ContainsFunc(runs, func(r Run) bool { return r.Sandbox == sandbox }) || n != 1 {
			say("%d operations of %s", n, sandbox)
		}
	}
	for _, s := range spans {
		if s.End < s.Start {
			say("%s took %v", s.Name, time.Duration(s.End-s.Start))
		}
		if p, is := byID[s.Parent]; is && (s.Start < p.Start || s.End > p.End) {
			say("%s, from %d to %d, is not within its parent %s, from %d to %d", s.Name, s.Start, s.End, p.Name, p.Start, p.End)
		} else if !is && s.Parent != "" {
			say("%s has a parent that was not sent", s.Name)
		}
	}
	ofRuns := map[string]int{}
	for _, r := range runs {
		found := slices.DeleteFunc(slices.Clone(spans), func(s Span) bool {
			return s.Kind != "run" || s.Name != r.Name() || s.Sandbox != r.Sandbox
		})
		ofRuns[r.Sandbox]++
		if len(found) != 1 {
			say("%d spans are of %s of %s", len(found), r.Plugin, r.Sandbox)
			continue
		}
		wrong = append(wrong, r.compare(found[0])...)
	}
	return wrong
}

func (r Run) compare(s Span) (wrong []string) {
	within := func(what string, is int64, bounds [2]int64, tolerance int64) {
		if is < bounds[0]-tolerance || is > bounds[1]+tolerance {
			wrong = append(wrong, fmt.Sprintf("%s of %s: its %s is %v, not from %v to %v", r.Plugin, r.Sandbox, what,
				time.Duration(is), time.Duration(bounds[0]), time.Duration(bounds[1])))
		}
	}
	within("time", s.End-s.Start, [2]int64{r.Ended[0] - r.Began[1], r.Ended[1] - r.Began[0]}, int64(time.Millisecond))
	within("start", s.Start-r.Wall+r.Mono, r.Began, tolerance)
	within("end", s.End-r.Wall+r.Mono, r.Ended, tolerance)
	return wrong
}
