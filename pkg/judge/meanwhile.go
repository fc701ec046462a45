package judge

import (
	"fmt"
	"time"

	"github.com/cniscope/cniscope/pkg/timeline"
)

// meanwhile names what an agent did longest while a call waited for it, of what may as well have been done for
// other calls: "; meanwhile agentd ran clang, for this or 2 other calls". It is charged to none of them. Empty
// if that is less than worth of the time, and of what the agent runs while nobody calls it.
func meanwhile(c *timeline.Connection) string {
	if c == nil || c.Work == nil {
		return ""
	}
	when := timeline.Interval{Start: c.Work.Own.Start, End: c.Work.Own.End}
	ran := longest(c.Work.Shared.Children, when)
	if ran.name == "" || float64(ran.took) < worth*float64(when.End-when.Start) {
		return ""
	}
	return fmt.Sprintf("; meanwhile %s ran %s, for this or %s", nameOf(c), ran.name, otherCalls(ran.others))
}

func otherCalls(n int) string {
	if n == 1 {
		return "another call"
	}
	return fmt.Sprintf("%d other calls", n)
}

// running is how long programs of one name ran, at least one of them.
type running struct {
	name   string
	took   time.Duration
	until  int64
	others int // calls that they may be for as well, at most
}

// longest returns the programs that ran longest within a time, of those that may be for several calls. The
// name is empty if there are none.
func longest(images []*timeline.Image, when timeline.Interval) (most running) {
	all := map[string]running{}
	for _, im := range images { // in order of their start
		a := im.Attribution
		if a == nil || a.Periodic || len(a.Others) == 0 {
			continue
		}
		r := all[im.Name]
		r.name, r.others = im.Name, max(r.others, len(a.Others))
		if start, end := max(im.Start, when.Start, r.until), min(im.End, when.End); start < end {
			r.took, r.until = r.took+time.Duration(end-start), end
		}
		if all[im.Name] = r; r.took > most.took {
			most = r
		}
	}
	return most
}
