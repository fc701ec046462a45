package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	core "k8s.io/api/core/v1"
	v1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/fleet/events"
	"github.com/cniscope/cniscope/pkg/text"
)

const (
	controller = "cniscope.dev/reader"
	reporting  = time.Minute
)

type writer struct {
	api  *rest.RESTClient
	as   *rest.Config // with the API server's token
	node string
	log  *slog.Logger

	failing  bool
	reported int // operations without an Event in the latest line
	next     time.Time
}

func (w *writer) tell(ctx context.Context, ledger *events.Ledger, from <-chan batch) error {
	for {
		write, pause := ledger.Next(time.Now())
		if write != nil {
			pause = 0
			ledger.Done(write, w.outcome(write, w.write(ctx, write)), time.Now())
		}
		w.report(ledger, time.Now())
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case came := <-from:
			timer.Stop()
			ledger.Forgot(int(min(came.forgotten, 1<<30)))
			for _, line := range came.lines {
				if n, ok := events.Of(line); ok {
					ledger.Offer(n, time.Now())
				}
			}
		case <-timer.C:
		}
	}
}

func (w *writer) report(ledger *events.Ledger, now time.Time) {
	if n := ledger.LeftOut(); n > w.reported && !now.Before(w.next) {
		w.log.Warn("Events dropped by limit", "operations", n-w.reported, "in_all", n,
			"most_a_minute", events.PerMinute)
		w.reported, w.next = n, now.Add(reporting)
	}
}

func (w *writer) write(ctx context.Context, write *events.Write) error {
	if write.Create {
		return w.api.Post().Namespace(write.Namespace).Resource("events").Body(w.event(write)).Do(ctx).Error()
	}
	patch, err := json.Marshal(map[string]any{"series": series(write)})
	if err != nil {
		return err
	}
	return w.api.Patch(types.MergePatchType).Namespace(write.Namespace).Resource("events").Name(write.Name).Body(patch).
		Do(ctx).Error()
}

func series(write *events.Write) *v1.EventSeries {
	count := int32(min(write.Count, 1<<30)) //nolint:gosec // bounded
	return &v1.EventSeries{Count: count, LastObservedTime: meta.NewMicroTime(write.Last)}
}

func (w *writer) event(write *events.Write) *v1.Event {
	e := &v1.Event{
		ObjectMeta:          meta.ObjectMeta{Name: write.Name, Namespace: write.Namespace},
		EventTime:           meta.NewMicroTime(write.Time),
		ReportingController: controller,
		ReportingInstance:   w.node[:min(len(w.node), 128)], // limit of the API
		Action:              write.Action,
		Reason:              write.Reason,
		Regarding: core.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: write.Namespace, Name: write.Pod, UID: types.UID(write.UID),
		},
		Note: write.Note,
		Type: write.Type,
	}
	if write.Count > 1 {
		e.Series = series(write)
	}
	return e
}

func (w *writer) outcome(write *events.Write, err error) events.Outcome {
	switch {
	case err == nil, write.Create && apierrors.IsAlreadyExists(err): // the previous answer was lost
		if w.failing {
			w.log.Info("API server accepts Events again")
			w.failing = false
		}
		return events.Written
	case apierrors.IsNotFound(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.HasStatusCause(err,
		core.NamespaceTerminatingCause):
		w.log.Debug("Event rejected", "pod", write.Pod, "error", w.said(write, err))
		return events.Gone
	}
	if !w.failing {
		facts := []any{"error", w.said(write, err)}
		if apierrors.IsForbidden(err) {
			facts = append(facts, "remedy", "let a ClusterRole of this ServiceAccount create and patch events.events.k8s.io")
		}
		w.log.Warn("API server rejects Events, retrying", facts...)
		w.failing = true
	}
	return events.Again
}

func (w *writer) said(write *events.Write, err error) string {
	told := told(w.as)
	told.Name(write.Namespace, write.Pod, write.Name)
	return text.Clean(told.Said(err.Error()), 2*text.Bound)
}

const (
	polling  = 50 * time.Second
	lateness = 15 * time.Second
	atOnce   = 500 // per answer
	// before is how far a restarted reader looks back.
	before                   = 10 * time.Second
	firstPause, longestPause = 100 * time.Millisecond, 5 * time.Second
)

type batch struct {
	lines     []control.Line
	forgotten uint64
}

type follower struct {
	node control.Reader
	log  *slog.Logger
}

// follow passes on operations until ctx ends. A slow receiver does not block: the history buffers.
func (f *follower) follow(ctx context.Context, to chan<- batch) {
	query := control.Query{Problems: true, Since: time.Now().Add(-before), Wait: polling, Limit: atOnce}
	pause, silent := firstPause, false
	for ctx.Err() == nil {
		found, err := f.ask(ctx, query)
		if err != nil {
			if ctx.Err() == nil && !silent && !errors.Is(err, control.ErrBusy) {
				f.log.Warn("cniscope does not answer; asking again", "error", err)
				silent = true
			}
			clock.Wait(ctx, pause)
			pause = min(2*pause, longestPause)
			continue
		}
		if silent {
			f.log.Info("cniscope answers again")
		}
		pause, silent = firstPause, false
		if query.After == 0 {
			found.Forgotten = 0 // before the start
		}
		query.After, query.Since = found.Next, time.Time{}
		if len(found.Operations) == 0 && found.Forgotten == 0 {
			continue
		}
		select {
		case to <- batch{found.Operations, found.Forgotten}:
		case <-ctx.Done():
		}
	}
}

func (f *follower) ask(ctx context.Context, query control.Query) (control.Operations, error) {
	ctx, cancel := context.WithTimeout(ctx, query.Wait+lateness)
	defer cancel()
	return f.node.Operations(ctx, query)
}
