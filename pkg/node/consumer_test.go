package node

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/pipeline"
	"github.com/cniscope/cniscope/pkg/programs"
	"github.com/cniscope/cniscope/pkg/record"
	"github.com/cniscope/cniscope/pkg/settings"
	"github.com/cniscope/cniscope/pkg/source"
	"github.com/cniscope/cniscope/test/harness"
)

// audience counts what it gets, and then does something with each item.
type audience struct {
	events, results int
	lost            []*event.Lost
	then            func()
}

func (a *audience) Wants(event.Body) bool { return true }

func (a *audience) Event(e event.Event) {
	if lost, is := e.Body.(*event.Lost); is {
		a.lost = append(a.lost, lost)
		return
	}
	a.events++
	a.then()
}

func (a *audience) Result(pipeline.Result) {
	a.results++
	a.then()
}

// recorded returns the events of a recording, and how many operations they complete.
func recorded(t *testing.T) (events []event.Event, operations int) {
	t.Helper()
	in := harness.Must(record.Open(t.Context(), "../../examples/recordings/three-pods.rec"))(t)
	defer in.Close()
	p := settings.Of(config.Default(), "boot", "test").Pipeline("boot")
	for e, err := in.Next(); !errors.Is(err, io.EOF); e, err = in.Next() {
		harness.Check(t, err)
		events = append(events, e)
		operations += len(p.Apply(e))
	}
	return events, operations
}

// fixed is a source that delivers events and ends.
type fixed []event.Event

func (fixed) Name() string        { return "fixed" }
func (fixed) Stats() source.Stats { return source.Stats{} }

func (f fixed) Run(_ context.Context, sink event.Sink) error {
	for _, e := range f {
		sink(e)
	}
	return nil
}

// One consumer blocks and one panics. No source waits, other consumers get everything, and both losses are counted. The
// consumer that blocked goes on, and gets the count of its losses.
func TestAConsumerThatBlocksOrPanicsDelaysNothing(t *testing.T) {
	const room = 64
	events, operations := recorded(t)
	var text harness.Log
	log := slog.New(slog.NewTextHandler(&text, nil))
	n := &node{
		log: log, pipeline: settings.Of(config.Default(), "boot", "test").Pipeline("boot"), opening: opening{},
		consumers: consumers{log: log, lost: map[string]*lost{}},
	}
	release := make(chan struct{})
	blocks, panics, healthy := &audience{then: func() { <-release }}, &audience{then: func() { panic("broken") }}, &audience{then: func() {}}
	enough := 2 * len(events)
	blocked := n.consumers.join("blocks", blocks, room)
	n.consumers.join("panics", panics, enough)
	heard := n.consumers.join("healthy", healthy, enough)

	harness.Check(t, source.Merge(t.Context(), log, time.Minute, n.take, fixed(events)))
	n.consumers.leave(heard)
	if healthy.events != len(events) || healthy.results != operations || len(healthy.lost) > 0 {
		t.Errorf("the healthy one got %d of %d events, %d of %d results", healthy.events, len(events), healthy.results, operations)
	}
	if dropped := int(blocked.lost.full.Load()); dropped < len(events)+operations-room-1 { // it has one in hand
		t.Errorf("only %d items were dropped for a queue of %d", dropped, room)
	}
	close(release)
	harness.Until(t, "the one that blocked gets on", func() bool { return len(blocked.queue) == 0 })
	n.take(event.Event{Time: n.pipeline.Now(), Body: &event.Tick{}})
	n.flush(t.Context())
	told := 0
	for _, lost := range blocks.lost {
		told += int(lost.Count)
		if lost.Source != "blocks" || lost.Reason != "consumer too slow" {
			t.Errorf("told of %+v", lost)
		}
	}
	if dropped := int(blocked.lost.full.Load()); told != dropped || blocks.events+blocks.results+dropped != len(events)+1+operations {
		t.Errorf("the one that blocked got %d events and %d results, lost %d, and was told of %d", blocks.events, blocks.results, dropped, told)
	}
	if panics.events != len(events)+1 || panics.results != operations || n.consumers.lost["panics"].panics.Load() != uint64(len(events)+1+operations) {
		t.Errorf("the one that panics got %d events and %d results", panics.events, panics.results)
	}
	harness.Says(t, text.String(), "consumer panicked; please report this", "consumer=panics", "consumer_test.go", `msg="consumer too slow`, "consumer=blocks")
}

// The end of a node does not wait for a consumer that blocks, and names it.
func TestAConsumerThatBlocksAtTheEndIsNamed(t *testing.T) {
	var text harness.Log
	c := consumers{log: slog.New(slog.NewTextHandler(&text, nil)), lost: map[string]*lost{}}
	release := make(chan struct{})
	defer close(release)
	c.join("blocks", &audience{then: func() { <-release }}, 1)
	c.event(event.Event{Body: &event.Tick{}})
	over, end := context.WithCancel(t.Context())
	end()
	c.close(over)
	c.event(event.Event{Body: &event.Tick{}}) // of a source that has not ended
	harness.Says(t, text.String(), "consumers=[blocks]")
}

// What doctor says of a failed call names the plugin that failed, wherever it stands in the chain.
func TestAFailureNamesThePluginThatFailed(t *testing.T) {
	run := func(plugin string, code uint32, below ...*model.Image) *model.Image {
		return &model.Image{Run: &model.Run{Plugin: plugin, Command: "ADD"}, Exit: model.Exit{Code: code}, Children: below}
	}
	for want, runs := range map[string][]*model.Image{
		"bridge":  {run("bridge", 1)},
		"dhcp":    {run("bridge", 1, run("dhcp", 1))},
		"portmap": {run("bridge", 0), run("portmap", 1)},
		"tuning":  {run("tuning", 0), run("policy", 0)}, // the runtime failed
		"absent":  {run("ptp", 0)},
	} {
		call := &model.Call{Command: "ADD", Network: "pods", Runs: runs}
		switch want {
		case "tuning":
			call.Undone = 1
		case "absent":
			call.NeverRun = []string{"absent", "tuning"}
		}
		var m recent
		op := &model.Operation{Calls: []*model.Call{call}}
		m.take(&pipeline.Judged{Operation: op, Judgement: judge.Options{}.Judge(op)})
		if got := m.list().Failures; len(got) != 1 || got[0].Plugin != want {
			t.Errorf("%+v, want %s", got, want)
		}
	}
}

// labelled is a source that tells of one sandbox.
type labelled struct{ source.Source }

func (labelled) Name() string        { return "labelled" }
func (labelled) Stats() source.Stats { return source.Stats{} }

func (labelled) Run(_ context.Context, sink event.Sink) error {
	sink(event.Event{Body: &event.Sandbox{Labels: map[string]string{"app": "web", "team": "blue", "app.kubernetes.io/name": "web", "example.com/owner": "Ann"}}})
	return nil
}

func TestOnlyChosenLabelsLeave(t *testing.T) {
	for toml, want := range map[string][]string{
		"":                     {"app", "app.kubernetes.io/name", "example.com/owner", "team"},
		"[trace]\nlabels = []": {},
		"[trace]\nlabels = [\"app.kubernetes.io/*\", \"a?p\"]": {"app", "app.kubernetes.io/name"},
		"[trace]\nlabels = [\"*\"]":                            {"app", "team"},
	} {
		o := harness.Must(config.Parse("test.toml", []byte(toml)))(t)
		n := &observer{log: slog.New(slog.DiscardHandler), sources: []source.Source{labelled{}}, trace: o.Trace, programs: programs.New(programs.Node{})}
		var got []string
		if err := n.run(t.Context(), func(e event.Event) {
			if sandbox, is := e.Body.(*event.Sandbox); is {
				got = slices.Sorted(maps.Keys(sandbox.Labels))
			}
		}); err != nil {
			t.Fatal(err)
		}
		harness.EqualSlices(t, got, want, toml, "leave")
	}
}

func TestOnlyChosenBaggageLeaves(t *testing.T) {
	for said, want := range map[string]string{
		"team=blue,key=secret": "team=blue", "key=secret": "", "tea=b%0A;token=x,team=a;secret": "tea=b%0A,team=a", "team": "", "": "",
		"team=" + strings.Repeat("x", 9000): "",
	} {
		call := &event.Call{Baggage: said}
		choose(event.Event{Body: &event.Exec{Call: call}}, config.Trace{Baggage: []string{"te*"}})
		harness.Equal(t, call.Baggage, want, said)
	}
}
