package node

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/pipeline"
	"github.com/cniscope/cniscope/pkg/record"
	"github.com/cniscope/cniscope/pkg/settings"
)

// streamRoom is how many events a recording may lag: 30 pods.
const streamRoom = 1 << 14

type stream struct {
	mu     sync.Mutex
	out    *record.Writer
	failed error
}

func (*stream) Wants(event.Body) bool { return true }

// Waits requests ticks: they show the client that all events have come.
func (*stream) Waits() bool { return true }

func (*stream) Result(pipeline.Result) {}

func (r *stream) Event(e event.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed != nil {
		return
	}
	if err := r.out.Write(e); err != nil && !errors.Is(err, record.ErrTooLong) {
		r.failed = err
	}
}

func (r *stream) sent(flush func()) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == nil {
		r.failed = r.out.Flush()
		flush()
	}
	return r.failed
}

func (n *node) record(ctx context.Context, s settings.Settings, w http.ResponseWriter, flush, wake func()) error {
	r := &stream{}
	r.mu.Lock() // events wait for the header
	joined := n.join(r, &s)
	header, err := s.Header()
	if err == nil {
		r.out, err = record.NewWriter(w, header)
	}
	r.failed = err
	r.mu.Unlock()
	wake()
	seen := time.NewTicker(200 * time.Millisecond)
	defer seen.Stop()
	for over := false; err == nil && !over; {
		select {
		case <-ctx.Done():
			over = true
		case <-seen.C:
			err = r.sent(flush)
		}
	}
	n.consumers.leave(joined)
	if r.failed != nil {
		return r.failed
	}
	return r.out.Close()
}

func (n *node) join(r *stream, s *settings.Settings) *consumed {
	n.mu.Lock()
	defer n.mu.Unlock()
	if s.Judge = n.pipeline.Judge; s.Judge.Baseline {
		s.Baseline = n.pipeline.Usual.Document()
	}
	return n.consumers.join("recording", r, streamRoom, slices.Collect(maps.Values(n.opening))...)
}

type opening map[reflect.Type]event.Event

func (o opening) remember(e event.Event) {
	switch e.Body.(type) {
	case *event.Networks, *event.Programs, *event.Runtime, *event.Registered, *event.Clock:
		o[reflect.TypeOf(e.Body)] = e
	}
}
