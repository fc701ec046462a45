package timeline

import (
	"time"

	"github.com/cniscope/cniscope/pkg/event"
)

// Inside is what an image asked of the kernel, and what it waited for. What is shorter
// than Options.MinSpan is only in the tallies, changes of the network and waits for the
// kernel's own locks excepted.
type Inside struct {
	// Waits in order of their end.
	Waits []Wait
	// Asleep and Polling are when a thread waited for a timer, or for whatever came first;
	// disjoint, in order. Threads do so while others work: that says little by itself.
	Asleep, Polling []Interval
	// Requests are all changes of the network, and the queries that took long.
	Requests    []Request
	Settings    []Setting
	Connections []*Connection
	Detections  []*Detection

	// Tallies of everything, also of what is above. Threads wait side by side, so these
	// times may be more than the wall time.
	Locks, Mutexes, Calls, Sleeps, Polls, Changes, Queries, Sysctls Tally

	// Entered is the first network namespace it went into that is not its own, and
	// Switches how often it went into one at all.
	Entered  event.Namespace
	Switches int

	// Configuration and Result are what a run read and wrote, whichever of its processes
	// did that; nil if it was not seen.
	Configuration *event.Configuration
	Result        *event.Result

	last systemCall // of the latest request or setting
}

// systemCall tells one from another. All requests of one share its time; and if that is
// long, a wait tells it once more.
type systemCall struct {
	thread uint32
	start  int64
}

// Tally is how often something was, and how long in all (ns).
type Tally struct {
	Count int
	Time  int64
}

func (t *Tally) add(n int, d int64) {
	t.Count += n
	t.Time += d
}

// Interval is a time from Start to End, in monotonic ns.
type Interval struct{ Start, End int64 }

func (i Interval) took() int64 { return i.End - i.Start }

// Setting is a sysctl that was written.
type Setting struct {
	*event.Setting
	When Interval
	// Attribution is how it came to belong to the call, if a server wrote it.
	Attribution *Attribution
}

// inside takes what happened inside a process.
func (t *Timeline) inside(now int64, body event.Body) {
	if by := body.Doer(); t.agents[by] != nil && t.processes[by] == nil && !bySocket(body) {
		// A server does it, for one of those who called.
		p := t.doing(by, body)
		if p == nil {
			return
		}
		t.processes[by] = p
		defer delete(t.processes, by)
	}
	switch b := body.(type) {
	case *event.Wait:
		t.wait(now, b)
	case *event.Request:
		t.request(now, b)
	case *event.Answer:
		t.answer(b)
	case *event.Address:
		t.address(now, b)
	case *event.Link:
		t.link(b)
	case *event.Setting:
		t.setting(now, b)
	case *event.Enter:
		t.enter(b)
	case *event.Connect:
		t.connect(now, b)
	case *event.Accept:
		t.accept(b)
	case *event.Close:
		t.hangUp(now, b)
	case *event.Agent:
		t.agentState(b)
	case *event.Configuration:
		t.configuration(b)
	case *event.Result:
		t.result(b)
	case *event.Cut:
		t.cut(b)
	case *event.Detail:
		t.detail(b)
	case *event.FirstConnection:
		t.firstConnection(now, b)
	}
}

// bySocket tells the events that belong to a connection, whoever's doing they are.
func bySocket(body event.Body) bool {
	switch body.(type) {
	case *event.Accept, *event.Close:
		return true
	}
	return false
}

// of returns the process of a fact from inside; nil, and then it is counted, if it belongs
// to nothing that is open.
func (t *Timeline) of(key event.Process) *process {
	p := t.processes[key]
	if p == nil {
		t.stats.Late++
	}
	return p
}

// current is the image that p runs; of a subshell, which runs none, that of who forked it.
func (p *process) current() *Image {
	if p.image != nil {
		return p.image
	}
	return p.up
}

func (im *Image) inside() *Inside {
	if im.Inside == nil {
		im.Inside = &Inside{}
	}
	return im.Inside
}

// within puts a time into that of the image, which may have begun later.
func (im *Image) within(start, end int64) Interval {
	end = max(end, im.Start)
	return Interval{min(max(start, im.Start), end), end}
}

// room reports whether the operation of p keeps one more fact, and counts it.
func (t *Timeline) room(p *process, what string) bool {
	op := p.op
	if op.facts < t.options.Facts {
		op.facts++
		return true
	}
	p.call.cut(what, 1)
	op.partial("more " + what + " than the limit")
	return false
}

func (c *Call) cut(what string, n uint64) {
	if c.Cut == nil {
		c.Cut = map[string]uint64{}
	}
	c.Cut[what] += n
}

// cut takes what the source did not keep.
func (t *Timeline) cut(c *event.Cut) {
	p := t.of(c.Process)
	if p == nil {
		return
	}
	what := c.What
	switch what {
	case "bytes": // of what was read or written: what is known of it is still right
	case "requests":
		p.op.partial("more requests of one process than are read")
	default:
		what = "other"
	}
	p.call.cut(what, c.Count)
}

// detail says that the inside of what runs is seen from now on, or not.
func (t *Timeline) detail(d *event.Detail) {
	t.seeing = d.On
	if !d.On {
		return
	}
	for _, op := range t.open {
		for _, call := range op.Calls {
			call.Seen = call.Seen || call.live() != nil
		}
	}
}

func (t *Timeline) setting(now int64, s *event.Setting) {
	p := t.of(s.Process)
	if p == nil {
		return
	}
	im := p.current()
	when := im.within(s.Start, now)
	in := im.inside()
	in.Sysctls.add(1, when.took())
	in.last = systemCall{s.Thread, when.Start}
	t.inNamespace(p, s.NetNS)
	if t.room(p, "sysctls") {
		in.Settings = append(in.Settings, Setting{s, when, p.doing})
	}
}

// between is how little a program may do between two rests for them to be one: whoever
// sleeps in a loop does some hundred thousand times what says nothing.
const between = 100 * time.Microsecond

// join adds an interval to others, in order, that ended before it did, or about then.
func join(to []Interval, i Interval) []Interval {
	for len(to) > 0 && to[len(to)-1].End+int64(between) >= i.Start {
		last := to[len(to)-1]
		i.Start, i.End = min(i.Start, last.Start), max(i.End, last.End)
		to = to[:len(to)-1]
	}
	return append(to, i)
}
