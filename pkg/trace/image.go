package trace

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/attr"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/w3c"
)

// image draws im. run is the run around it, nil for a run of the chain; failing: the call failed.
func (w *writer) image(where at, im, run *model.Image, failing bool) {
	kind, name := attr.KindCommand, w.names.Limit(im.Name, "command")
	if im.Run != nil {
		kind = attr.KindRun
		if run != nil {
			kind = attr.KindDelegate
		}
		run = im
		name = strings.TrimSpace(w.names.Limit(im.Run.Plugin, "plugin") + " " + im.Run.Command)
	}
	s := w.span(where, w.ids.span(where.trace, string(im.Process), im.Start), name, im.Start, im.End, kind)
	add(s, aboutRun(run.Run)...)
	w.scratch = aboutActivity(aboutProcess(w.scratch[:0], im), im)
	add(s, w.scratch...)
	s.Links = append(w.perhaps(im.Attribution), threadLinks(im.Thread)...)
	if limit, slow := w.j.Slow[im]; slow {
		w.slow(s, limit, im.End)
	}
	// `iptables -C` exits with 1 in every healthy ADD, and SIGPIPE ends writers when their reader stops, so only these
	// are errors.
	died := im.Signal != "" && im.Signal != "SIGPIPE"
	if im.Failed() && (died || failing && judge.Fails(run)) || im.Run != nil && failing && judge.Fails(im) {
		fail(s, judge.Describe(im), errorType(im))
	}
	below := where.under(s)
	w.draw(&drawing{
		image: im, outer: below, span: s, run: run, failing: failing && (judge.Fails(run) || im.Failed()),
	})
	for _, child := range im.Children {
		w.image(below, child, run, failing)
	}
}

func threadLinks(threads ...*event.ThreadSpan) (links []*tracepb.Span_Link) {
	for _, thread := range threads {
		if thread == nil {
			continue
		}
		if span := w3c.Parse(thread.TraceContext); span.IsValid() {
			links = append(links, link(span.SpanContext, "span of the thread"))
		}
	}
	return links
}

type drawer struct {
	turn int // order of drawing, before that of events
	draw func(*drawing, *model.Fact)
}

func drawers() [model.FactKinds]drawer {
	return [model.FactKinds]drawer{
		model.FactChange:     {1, (*drawing).change},
		model.FactQuery:      {1, (*drawing).query},
		model.FactSetting:    {2, (*drawing).setting},
		model.FactLock:       {3, (*drawing).lock},
		model.FactMutex:      {3, (*drawing).lock},
		model.FactSleep:      {3, (*drawing).sleep},
		model.FactPoll:       {3, (*drawing).call},
		model.FactCall:       {3, (*drawing).call},
		model.FactMount:      {3, (*drawing).mount},
		model.FactHalt:       {3, (*drawing).halt},
		model.FactMissing:    {3, (*drawing).missing},
		model.FactDetection:  {4, (*drawing).detection},
		model.FactConnection: {5, (*drawing).connection},
	}
}

func (w *writer) draw(d *drawing) {
	d.writer = w
	d.where = d.outer
	if len(d.image.Facts) > 0 {
		d.where.attributes = appendAll(slices.Clip(d.outer.attributes), inSpan, aboutRun(d.run.Run)...)
	}
	of := drawers()
	facts := slices.Clone(d.image.Facts)
	slices.SortStableFunc(facts, func(a, b *model.Fact) int {
		return cmp.Compare(of[a.Kind()].turn, of[b.Kind()].turn)
	})
	for _, f := range facts {
		of[f.Kind()].draw(d, f)
	}
	slices.SortStableFunc(d.span.Events, func(a, b *tracepb.Span_Event) int {
		return cmp.Compare(a.TimeUnixNano, b.TimeUnixNano)
	})
}

func (d *drawing) mount(f *model.Fact) {
	mount := f.What.(*model.Mount)
	name := "mount"
	if mount.Name == "umount2" {
		name = "unmount"
	}
	s := d.fact(f, name, attr.KindMount, nonZero(
		attr.MountTarget(mount.Target),
		attr.MountFstype(mount.FSType),
		attr.MountSource(mount.Source),
		attr.MountFlags(mount.Flags...),
		attr.SystemCall(mount.Name),
		attr.Errno(mount.Error),
	)...)
	if mount.Error != "" {
		d.fail(s, judge.Mounting(mount), mount.Error)
	}
}

func (d *drawing) connection(f *model.Fact) {
	c := f.What.(*model.Connection)
	if !d.long(f) {
		if c.Error != "" {
			d.happened(d.span, "call refused", f.When.End, append(aboutPeer(c), aboutAttribution(f.Attribution)...)...)
		}
		return
	}
	name := "call agent"
	if c.Exchange != nil {
		name = "call peer"
	}
	s := d.fact(f, name, attr.KindAgent, aboutPeer(c)...)
	s.Kind = tracepb.Span_SPAN_KIND_CLIENT
	s.Links = append(s.Links, threadLinks(c.Threads...)...)
	if c.Error != "" {
		d.fail(s, judge.Peer(c)+": "+c.Error, c.Error)
	}
	if limit, slow := d.j.SlowAgents[c]; slow {
		d.slow(s, limit, f.When.End)
	}
	if c.Work != nil {
		d.work(s, c.Work, f.When)
	}
}

func (d *drawing) work(s *tracepb.Span, work *model.Work, when model.Interval) {
	add(s, aboutWork(work, when)...)
	add(s, aboutActivity(nil, work.Own)...)
	if !work.Perhaps {
		add(s, aboutStack(work.Stack)...)
	}
	if work.Gone != 0 {
		d.happened(s, "the agent ended", work.Gone, nonZero(attr.AgentKilled(work.Killed))...)
	}
	if work.Successor != nil {
		d.happened(s, "another agent answers in its place", work.Back, aboutActor(work.Successor)...)
	}
	below := d.outer.under(s)
	for n, im := range []*model.Image{work.Own, work.Shared} {
		for _, child := range im.Children {
			d.writer.image(below, child, d.run, d.failing)
		}
		d.draw(&drawing{image: im, outer: below, span: s, run: d.run, failing: d.failing, agent: fmt.Sprint(" work ", n)})
	}
}
