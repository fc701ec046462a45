package node

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/programs"
	"github.com/cniscope/cniscope/pkg/source"
	"github.com/cniscope/cniscope/test/harness"
)

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
