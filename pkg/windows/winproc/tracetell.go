package winproc

import (
	"cmp"
	"math"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/arguments"
	"github.com/cniscope/cniscope/pkg/probe/evidence"
	"github.com/cniscope/cniscope/pkg/probe/image"
	"github.com/cniscope/cniscope/pkg/redact"
	"github.com/cniscope/cniscope/pkg/text"
)

type call struct {
	*lived
	event.Call
	interfaces []string
}

const (
	tracePause = int64(500 * time.Millisecond)
	traceQuiet = int64(25 * time.Second) // until ticks pause
	ticksMax   = 1 << 20
)

func (t *Trace) calls() (all []*call) {
	for _, l := range t.lives {
		if t.partOf(l) == partPlugin {
			l.call = &call{lived: l}
			all = append(all, l.call)
		}
	}
	return all
}

func callOf(l *lived) *call {
	if l.call == nil && l.part == partCommand {
		l.call = callOf(l.up)
	}
	return l.call
}

// name finds calls' interfaces: those that no other call can have.
func (t *Trace) name(calls []*call) {
	near, seen := among(calls), map[string]bool{}
	for _, l := range t.lives {
		c := callOf(l)
		for _, name := range interfaces(l) {
			if seen[name] {
				continue
			}
			seen[name] = true
			if l.part == partWork {
				c = near.only(l.Time)
			}
			if c != nil && c.name() == antrea {
				c.interfaces = append(c.interfaces, name)
			}
		}
	}
	of := map[string]*call{}
	for _, c := range calls {
		if len(c.interfaces) == 1 && c.ContainerID == "" {
			name := c.interfaces[0]
			pod := name[:strings.LastIndexByte(name, '-')]
			if len(pod) == antreaPod {
				pod += "…"
			}
			of[name], c.Pod.Name = c, cmp.Or(c.Pod.Name, pod)
		}
	}
	for _, l := range t.lives {
		for _, name := range interfaces(l) {
			if c := of[name]; c != nil && l.part == partWork && l.Time >= c.Time && l.Time < c.until(0) {
				l.call = c
			}
		}
	}
}

const (
	antrea    = "antrea"
	antreaPod = 8
)

// As in evidence: of the pod's name, and the container's hash.
var antreaInterface = regexp.MustCompile(`(?:^|[^\w.-])([a-z0-9][a-z0-9.-]{0,7}-[0-9a-f]{6})(?:$|[^\w.-])`)

func interfaces(l *lived) (names []string) {
	if l.part != partCommand && l.part != partWork {
		return nil
	}
	for _, m := range antreaInterface.FindAllStringSubmatch(l.CommandLine, -1) {
		if hash := m[1][len(m[1])-6:]; strings.ContainsAny(hash, "0123456789") {
			names = append(names, m[1])
		}
	}
	return names
}

func (l *lived) until(more int64) int64 {
	if l.ended == 0 {
		return math.MaxInt64
	}
	return l.ended + more
}

type nearby struct {
	calls []*call // later starts
	over  []int64 // later ends
	open  int
	last  *call // ends last
}

func among(calls []*call) *nearby {
	n := &nearby{calls: calls}
	for _, c := range calls {
		n.over = append(n.over, c.until(after))
	}
	slices.Sort(n.over)
	return n
}

// only returns the one call that an agent can have worked for; at may not fall.
func (n *nearby) only(at int64) *call {
	for ; len(n.calls) > 0 && n.calls[0].Time <= at; n.calls = n.calls[1:] {
		if n.open++; n.last == nil || n.calls[0].until(0) > n.last.until(0) {
			n.last = n.calls[0]
		}
	}
	for ; len(n.over) > 0 && n.over[0] < at; n.over = n.over[1:] {
		n.open--
	}
	if n.open != 1 || n.last.until(0) <= at {
		return nil
	}
	return n.last
}

type moment struct {
	at   int64
	of   *lived
	exit bool
}

func (t *Trace) tell(sink event.Sink) {
	var all []moment
	for _, l := range t.lives {
		if t.partOf(l) < partPlugin {
			continue
		}
		all = append(all, moment{at: l.Time, of: l})
		if l.ended != 0 {
			all = append(all, moment{l.ended, l, true})
		}
	}
	slices.SortStableFunc(all, func(a, b moment) int { return cmp.Compare(a.at, b.at) })
	n := &narrator{sink: sink, sandboxes: evidence.Sandboxes{}, left: ticksMax, now: t.Began}
	sink(event.Event{Time: t.Began, Body: &event.Origin{Source: "etw"}})
	sink(event.Event{Time: t.Began, Body: &event.Clock{Wall: t.Wall}})
	for _, m := range all {
		n.advance(m.at)
		if m.exit {
			n.ended(m.of)
		} else {
			n.began(m.of)
		}
	}
	n.advance(t.last)
}

type narrator struct {
	sink      event.Sink
	sandboxes evidence.Sandboxes
	now       int64
	left      int
}

func (n *narrator) advance(to int64) {
	for at := n.now + tracePause; at < min(to, n.now+traceQuiet) && n.left > 0; at += tracePause {
		n.left--
		n.sink(event.Event{Time: at, Body: &event.Tick{}})
	}
	n.now = max(n.now, to)
}

func (n *narrator) began(l *lived) {
	tell := func(body event.Body) { n.sink(event.Event{Time: l.Time, Body: body}) }
	if l.part == partAgent {
		tell(&event.Agent{Process: l.key(), PID: l.PID, Name: text.Clean(path.Base(l.file), 64), Hidden: true})
		return
	}
	e := &event.Exec{Process: l.key(), PID: l.PID, ParentPID: l.Parent, Started: l.Time, InFlight: l.present}
	if l.up != nil {
		e.Parent = l.up.key()
	}
	im := image.Image{File: l.file, Args: l.args}
	im.Describe(e, arguments.Known, &redact.Call{})
	c := l.call
	switch l.part {
	case partWork:
		n.sandboxes.Forget(l.Time - after)
		if e.Mentions = n.sandboxes.Mentions(nil, nil, l.args...); c != nil {
			e.Mentions = []string{c.ContainerID}
		}
	case partPlugin:
		e.Root, e.Caller = true, event.CallerRuntime
		n.sandboxes.Begin(&c.Call, "", false)
	default:
		tell(&event.Fork{Process: e.Process, Parent: e.Parent, PID: l.PID})
	}
	if l.part == partPlugin || c.delegates(l) {
		told := c.Call
		e.InPath, e.Call = true, &told
		e.File, e.Name = text.Clean(l.file, text.Bound), text.Clean(path.Base(l.file), 64)
	}
	tell(e)
}

func (c *call) delegates(l *lived) bool {
	return c != nil && l.part == partCommand && len(l.args) <= 1 && strings.EqualFold(path.Dir(l.file), path.Dir(c.file))
}

func (n *narrator) ended(l *lived) {
	exit := &event.Exit{Process: l.key(), Code: l.code, Unseen: l.lost}
	n.sink(event.Event{Time: l.ended, Body: exit})
	if l.part == partPlugin {
		n.sandboxes.End(l.call.ContainerID, false, l.ended)
	}
}
