package trace

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/semconv/v1.43.0"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/attr"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/timeline"
)

// inside makes the spans and events of what an image asked for and waited for. s is the
// image's own span, and where is below it.
func (w *writer) inside(s *tracepb.Span, where at, im, run *timeline.Image, failing bool) {
	i := &insider{writer: w, image: im, outer: where, span: s, run: run, failing: failing && (judge.Fails(run) || im.Failed())}
	i.draw()
}

// draw makes them all.
func (i *insider) draw() {
	// Below the image all is part of the same plugin.
	i.where = i.outer
	i.where.attributes = slices.Concat(i.outer.attributes, keyValues([]attribute.KeyValue{
		attr.CNICommand(i.run.Run.Command), attr.CNIPlugin(i.run.Run.Plugin),
	}))
	i.changes()
	i.settings()
	i.waits()
	i.detections()
	i.connections()
	slices.SortStableFunc(i.span.Events, func(a, b *tracepb.Span_Event) int { return cmp.Compare(a.TimeUnixNano, b.TimeUnixNano) })
}

// insider is the state of one image's inside.
type insider struct {
	*writer
	image   *timeline.Image
	outer   at // below the image
	where   at // the same, where the image's own are
	span    *tracepb.Span
	run     *timeline.Image
	failing bool // its plugin failed, and its call with it
	made    int
	salt    string // of what a server did: sets it apart from what else it did then
}

// child makes a span below where. What there is in an image has no key but its place.
func (i *insider) child(where at, name, kind string, when timeline.Interval, about ...attribute.KeyValue) *tracepb.Span {
	i.made++
	id := i.ids.span(where.trace, fmt.Sprint(kind, " ", i.made, " ", i.image.Process, " ", i.image.Start)+i.salt, when.Start)
	s := i.writer.span(where, id, name, when.Start, when.End, kind)
	s.Attributes = append(append(s.Attributes, where.attributes...), keyValues(about)...)
	return s
}

// happened adds a span event.
func (i *insider) happened(s *tracepb.Span, name string, at int64, about ...attribute.KeyValue) {
	s.Events = append(s.Events, &tracepb.Span_Event{Name: name, TimeUnixNano: i.wall(at), Attributes: keyValues(about)})
}

// long tells whether something has a span of its own.
func (i *insider) long(when timeline.Interval) bool {
	return time.Duration(when.End-when.Start) >= i.op.MinSpan
}

// idly tells the same of what is of no further interest.
func (i *insider) idly(when timeline.Interval) bool {
	return time.Duration(when.End-when.Start) >= timeline.Idly*i.op.MinSpan
}

// fail marks a span of what went wrong, if the plugin failed too.
func (i *insider) fail(s *tracepb.Span, message, errorType string) {
	if i.failing {
		fail(s, message, errorType)
	}
}

func (i *insider) settings() {
	for f, set := range timeline.Each[*timeline.Setting](i.image.Facts) {
		about := append(nonZero(
			attr.SysctlKey(set.Key),
			attr.SysctlValue(set.Value),
			attr.Errno(set.Error),
			attr.NetNSInode(set.NetNS.Label),
		), aboutAttribution(f.Attribution)...)
		if i.long(f.When) {
			s := i.child(i.where, "write sysctl", attr.KindSysctl, f.When, about...)
			s.Links = append(s.Links, i.perhaps(f.Attribution)...)
		} else {
			i.happened(i.span, "write sysctl", f.When.End, about...)
		}
	}
}

func (i *insider) waits() {
	for f, wait := range timeline.Each[*timeline.Wait](i.image.Facts) {
		if !i.long(f.When) || wait.Kind == event.WaitCall && !i.idly(f.When) {
			continue
		}
		failed := attr.Errno(wait.Error)
		switch wait.Kind {
		case event.WaitLock, event.WaitMutex:
			s := i.child(i.where, "wait for lock", attr.KindLock, f.When, aboutLock(wait)...)
			if wait.Blame != nil {
				s.Links = append(s.Links, link(i.ids.run(wait.Blame), "it had the lock"))
			}
			s.Attributes = append(s.Attributes, keyValues(nonZero(failed))...)
			if limit, slow := i.j.SlowLocks[wait]; slow {
				i.slow(s, limit, f.When.End)
			}
		case event.WaitSleep:
			i.child(i.where, "sleep", attr.KindWait, f.When, attr.SystemCall(wait.Name))
		default:
			s := i.child(i.where, "system call", attr.KindWait, f.When, attr.SystemCall(wait.Name))
			s.Attributes = append(s.Attributes, keyValues(nonZero(failed))...)
		}
	}
}

func aboutLock(wait *timeline.Wait) []attribute.KeyValue {
	kvs := nonZero(attr.LockPath(wait.Path))
	if wait.Kind == event.WaitMutex {
		kvs = nonZero(attr.LockName(wait.Name))
	}
	if wait.Tries > 1 {
		kvs = append(kvs, attr.LockTries(wait.Tries))
	}
	kvs = append(kvs, nonZero(attr.LockPassed(wait.Passed))...)
	if h := wait.Holder; h != nil {
		kvs = append(kvs, nonZero(
			attr.LockHolderName(h.Name),
			attr.LockHolderParent(h.Parent),
			attr.LockHolderPID(int(h.PID)),
		)...)
		if wait.Kind == event.WaitLock {
			kvs = append(kvs,
				attr.LockHolderAgeMS(time.Duration(wait.HolderAge)),
				attr.LockHolderAgeExact(wait.AgeExact))
		}
	}
	return kvs
}

func (i *insider) detections() {
	for f, d := range timeline.Each[*timeline.Detection](i.image.Facts) {
		if !i.long(f.When) {
			continue
		}
		s := i.child(i.where, "wait for IPv6 DAD", attr.KindDAD, f.When, nonZero(
			attr.Address(d.Address),
			attr.AddressState(string(d.State)),
			semconv.NetworkInterfaceNameKey.String(d.On),
			attr.NetNSInode(d.NetNS.Label),
		)...)
		if d.State == event.AddressDuplicate {
			i.fail(s, d.Address+" is somebody else's", "duplicate address")
		}
	}
}

func (i *insider) connections() {
	for f, c := range timeline.Each[*timeline.Connection](i.image.Facts) {
		about := aboutPeer(c)
		if !i.long(f.When) {
			if c.Error != "" {
				i.happened(i.span, "call refused", f.When.End, about...)
			}
			continue
		}
		s := i.child(i.where, "call agent", attr.KindAgent, f.When, about...)
		s.Kind = tracepb.Span_SPAN_KIND_CLIENT
		if c.Error != "" {
			i.fail(s, judge.Peer(c)+": "+c.Error, c.Error)
		}
		if limit, slow := i.j.SlowAgents[c]; slow {
			i.slow(s, limit, f.When.End)
		}
		i.work(s, c.Work)
	}
}
