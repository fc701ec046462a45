package trace

import (
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/attr"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/timeline"
)

// drawing is the state of drawing the facts of one image.
type drawing struct {
	*writer
	image   *timeline.Image
	outer   at // below the image
	where   at // the same, for the image's own facts
	span    *tracepb.Span
	run     *timeline.Image
	failing bool // its plugin failed, and its call with it
	made    int
	agent   string                   // of what an agent did: sets it apart from what else it did then
	groups  map[string]*tracepb.Span // of interfaces
}

// child makes a span below where. Its id comes from its number within the image: a fact has no key.
func (d *drawing) child(where at, name, kind string, when timeline.Interval, about ...attribute.KeyValue) *tracepb.Span {
	d.made++
	id := d.ids.span(where.trace, fmt.Sprint(kind, " ", d.made, " ", d.image.Process, " ", d.image.Start)+d.agent, when.Start)
	s := d.writer.span(where, id, name, when.Start, when.End, kind)
	add(s, about...)
	return s
}

// fact makes the span of one of the image's own facts, with how it came to belong to the call.
func (d *drawing) fact(f *timeline.Fact, name, kind string, about ...attribute.KeyValue) *tracepb.Span {
	s := d.child(d.where, name, kind, f.When, append(about, aboutAttribution(f.Attribution)...)...)
	s.Links = d.perhaps(f.Attribution)
	return s
}

func (d *drawing) long(f *timeline.Fact) bool {
	return time.Duration(f.When.End-f.When.Start) >= d.op.MinSpan
}

// fail marks a span as failed, if its plugin failed, too.
func (d *drawing) fail(s *tracepb.Span, message, errorType string) {
	if d.failing {
		fail(s, message, errorType)
	}
}

func (d *drawing) setting(f *timeline.Fact) {
	set := f.What.(*timeline.Setting)
	if !d.long(f) {
		d.happened(d.span, "write sysctl", f.When.End, append(aboutSetting(set), aboutAttribution(f.Attribution)...)...)
		return
	}
	d.fact(f, "write sysctl", attr.KindSysctl, aboutSetting(set)...)
}

func (d *drawing) lock(f *timeline.Fact) {
	if !d.long(f) {
		return
	}
	wait := f.What.(*timeline.Wait)
	s := d.fact(f, "wait for lock", attr.KindLock, aboutLock(wait)...)
	if wait.Blame != nil {
		s.Links = append(s.Links, link(d.ids.run(wait.Blame), "it had the lock"))
	}
	if limit, slow := d.j.SlowLocks[wait]; slow {
		d.slow(s, limit, f.When.End)
	}
}

func (d *drawing) sleep(f *timeline.Fact) {
	if d.long(f) {
		d.fact(f, "sleep", attr.KindWait, attr.SystemCall(f.What.(*timeline.Wait).Name))
	}
}

func (d *drawing) halt(f *timeline.Fact) {
	d.fact(f, string(f.What.(*timeline.Halt).State), attr.KindWait)
}

// call draws another system call, of which only the longest are of interest.
func (d *drawing) call(f *timeline.Fact) {
	if time.Duration(f.When.End-f.When.Start) < timeline.Idly*d.op.MinSpan {
		return
	}
	wait := f.What.(*timeline.Wait)
	d.fact(f, "system call", attr.KindWait, nonZero(attr.SystemCall(wait.Name), attr.Errno(wait.Error))...)
}

func (d *drawing) detection(f *timeline.Fact) {
	if !d.long(f) {
		return
	}
	detection := f.What.(*timeline.Detection)
	s := d.fact(f, "wait for IPv6 DAD", attr.KindDAD, aboutDetection(detection)...)
	if detection.State == event.AddressDuplicate {
		d.fail(s, detection.Address+" is somebody else's", "duplicate address")
	}
}
