package trace

import (
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/attr"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

type drawing struct {
	*writer
	image   *model.Image
	outer   at // below the image
	where   at // the same, for the image's own facts
	span    *tracepb.Span
	run     *model.Image
	failing bool
	made    int
	agent   string                   // separates simultaneous agent work
	groups  map[string]*tracepb.Span // spans of interfaces
}

// child draws a span, identified by a number within the image: facts have no key.
func (d *drawing) child(where at, name, kind string, when model.Interval, about ...attribute.KeyValue) *tracepb.Span {
	d.made++
	key := kind + " " + strconv.Itoa(d.made) + " " + string(d.image.Process) + " " +
		strconv.FormatInt(d.image.Start, 10) + d.agent
	id := d.ids.span(where.trace, key, when.Start)
	s := d.writer.span(where, id, name, when.Start, when.End, kind)
	add(s, about...)
	return s
}

func (d *drawing) fact(f *model.Fact, name, kind string, about ...attribute.KeyValue) *tracepb.Span {
	s := d.child(d.where, name, kind, f.When, append(about, aboutAttribution(f.Attribution)...)...)
	s.Links = d.perhaps(f.Attribution)
	return s
}

func (d *drawing) long(f *model.Fact) bool {
	return time.Duration(f.When.End-f.When.Start) >= d.op.MinSpan
}

func (d *drawing) fail(s *tracepb.Span, message, errorType string) {
	if d.failing {
		fail(s, message, errorType)
	}
}

func (d *drawing) setting(f *model.Fact) {
	set := f.What.(*model.Setting)
	if !d.long(f) {
		d.happened(d.span, "write sysctl", f.When.End, append(aboutSetting(set), aboutAttribution(f.Attribution)...)...)
		return
	}
	d.fact(f, "write sysctl", attr.KindSysctl, aboutSetting(set)...)
}

func (d *drawing) lock(f *model.Fact) {
	if !d.long(f) {
		return
	}
	wait := f.What.(*model.Wait)
	s := d.fact(f, "wait for lock", attr.KindLock, aboutLock(wait)...)
	if wait.Blame != nil {
		s.Links = append(s.Links, link(d.ids.run(wait.Blame), "it had the lock"))
	}
	if limit, slow := d.j.SlowLocks[wait]; slow {
		d.slow(s, limit, f.When.End)
	}
}

func (d *drawing) sleep(f *model.Fact) {
	if d.long(f) {
		d.fact(f, "sleep", attr.KindWait, attr.SystemCall(f.What.(*model.Wait).Name))
	}
}

func (d *drawing) halt(f *model.Fact) {
	d.fact(f, string(f.What.(*model.Halt).State), attr.KindWait)
}

func (d *drawing) call(f *model.Fact) {
	if time.Duration(f.When.End-f.When.Start) < model.Idly*d.op.MinSpan {
		return
	}
	wait := f.What.(*model.Wait)
	d.fact(f, "system call", attr.KindWait, nonZero(attr.SystemCall(wait.Name), attr.Errno(wait.Error))...)
}

func (d *drawing) detection(f *model.Fact) {
	if !d.long(f) {
		return
	}
	detection := f.What.(*model.Detection)
	s := d.fact(f, "wait for IPv6 DAD", attr.KindDAD, aboutDetection(detection)...)
	if detection.State == event.AddressDuplicate {
		d.fail(s, detection.Address+" is a duplicate", "duplicate address")
	}
}

func (d *drawing) missing(f *model.Fact) {
	m := f.What.(*model.Missing)
	d.fact(f, "poll for file", attr.KindWait, nonZero(
		attr.PolledPath(m.Path), attr.PolledTries(int(m.Count)), attr.SystemCall(m.Name), attr.Errno(m.Error),
	)...)
}
