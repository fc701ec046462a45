package source

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
)

// sourceOf is a source that is one function.
type sourceOf func(context.Context, event.Sink) error

func (f sourceOf) Run(ctx context.Context, sink event.Sink) error { return f(ctx, sink) }

func TestWhatBeganEarlyIsTakenFromItsFirstEvent(t *testing.T) {
	over, started := errors.New("over"), make(chan struct{})
	b := Begin(t.Context(), slog.New(slog.DiscardHandler), sourceOf(func(_ context.Context, sink event.Sink) error {
		close(started)
		for i := range 3 {
			sink(event.Event{Time: int64(i)})
		}
		return over
	}))
	<-started
	var got []int64
	err := Merge(t.Context(), slog.New(slog.DiscardHandler), func(e event.Event) { got = append(got, e.Time) }, b)
	if !errors.Is(err, over) || len(got) != 3 || got[0] != 0 {
		t.Errorf("%v, %v", got, err)
	}
}

func TestWhatBeganEarlyEndsWithWhoeverTakesItsEvents(t *testing.T) {
	b := Begin(t.Context(), slog.New(slog.DiscardHandler), sourceOf(func(ctx context.Context, _ event.Sink) error {
		<-ctx.Done()
		return nil
	}))
	failed := errors.New("another source failed")
	err := Merge(t.Context(), slog.New(slog.DiscardHandler), func(event.Event) {}, b,
		sourceOf(func(context.Context, event.Sink) error { return failed }))
	if !errors.Is(err, failed) {
		t.Error(err)
	}
}

func TestWhatBeganEarlyEndsWhenNobodyComes(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	b := Begin(ctx, slog.New(slog.DiscardHandler), sourceOf(func(_ context.Context, sink event.Sink) error {
		sink(event.Event{})
		return nil
	}))
	cancel()
	if err := <-b.ended; err != nil {
		t.Error(err)
	}
}
