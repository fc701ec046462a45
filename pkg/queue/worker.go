package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/cniscope/cniscope/pkg/spool"
	"github.com/cniscope/cniscope/pkg/text"
)

type worker struct {
	*Queue
	reporter
	backoff *backoff.ExponentialBackOff
	// limit bounds the next batch. A refusal halves it, to find the faulty item; a success doubles it.
	limit int
}

func newWorker(q *Queue) *worker {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval = q.RetryFrom
	b.MaxInterval = time.Duration(float64(q.RetryTo) / (1 + b.RandomizationFactor)) // jitter comes on top
	return &worker{Queue: q, reporter: reporter{log: q.Log}, backoff: b, limit: q.Batch}
}

// pace is between requests of an emptied queue, until it is half full: one costs more than most items.
const pace = 500 * time.Millisecond

func (w *worker) run(ctx context.Context) {
	defer close(w.done)
	defer w.giveBack()
	var sent time.Time
	for {
		sender, batch, more := w.next()
		if !more || ctx.Err() != nil {
			return
		}
		if batch.len() == 0 {
			select {
			case <-w.wake:
			case <-ctx.Done():
			}
			w.rest(ctx, pace-time.Since(sent))
			continue
		}
		sent = time.Now()
		err := guard(func() error { return sender.Send(ctx, batch.items) })
		if ctx.Err() != nil {
			// Close interrupted the request: only a success counts.
			if err == nil {
				w.take(batch, nil)
			}
			return
		}
		if pause := w.take(batch, err); pause > 0 {
			w.pause(ctx, pause)
		}
	}
}

type batch struct {
	items   [][]byte
	spooled []spool.Record
}

func (b batch) len() int { return len(b.items) }

// next returns the next batch, which may be empty; more is false if the queue is closed and empty.
func (w *worker) next() (sender Sender, b batch, more bool) {
	w.mu.Lock()
	retired := w.retired
	w.retired = nil
	if w.sender == nil {
		w.stats.FailingSince = time.Time{}
		w.stats.drop(SwitchedOff, w.remove(len(w.sendable())))
	}
	size := 0
	for _, item := range w.sendable() {
		if size += len(item.Data); b.len() == w.limit || b.len() > 0 && size > maxRequest {
			break
		}
		b.items = append(b.items, item.Data)
	}
	sender, more = w.sender, !w.closed || len(w.waiting.Held()) > 0 || w.storing
	w.mu.Unlock()
	if b.len() == 0 && sender != nil && w.Spool != nil {
		b = w.fromSpool()
		more = more || b.len() > 0
	}

	for _, e := range retired {
		if err := shutdown(e); err != nil {
			w.log.Debug("replaced sender not closed cleanly", "error", err)
		}
	}
	return sender, b, more
}

type outcome int

const (
	arrived outcome = iota
	arrivedInPart
	rejected
	panicked
	failed
)

func meaning(err error) outcome {
	switch {
	case err == nil:
		return arrived
	case errors.As(err, new(*PartialError)):
		return arrivedInPart
	case errors.As(err, new(*RejectedError)):
		return rejected
	case errors.As(err, new(*panicError)):
		return panicked
	}
	return failed
}

func (w *worker) take(b batch, err error) (pause time.Duration) {
	now, what := time.Now(), meaning(err)
	damaged := w.advance(b, what)
	w.mu.Lock()
	settled := w.settle(b, what, err, now)
	w.stats.drop(Damaged, damaged)
	since := w.stats.FailingSince
	if settled {
		w.stats.FailingSince = time.Time{}
	}
	w.mu.Unlock()

	// Unlocked, so that a blocked log does not block Add.
	s := w.Stats()
	switch what {
	case arrivedInPart:
		w.refused(now, s)
	case panicked:
		w.crashed(err)
	case failed:
		w.failed(s)
		pause = w.backoff.NextBackOff()
		if t, ok := errors.AsType[*ThrottledError](err); ok {
			pause = max(pause, min(t.After, w.RetryTo))
		}
		return pause
	}
	if settled {
		w.backoff.Reset()
		w.works(now, since, s)
	}
	return 0
}

// settle counts and removes the items of an answered batch. It returns false if the batch is sent again, whole or
// halved.
func (w *worker) settle(b batch, what outcome, err error, now time.Time) bool {
	n := b.len()
	if err != nil {
		w.stats.LastError = text.Clean(err.Error(), 2*text.Bound)
	}
	switch what {
	case failed:
		w.stats.Retries++
		if w.stats.FailingSince.IsZero() {
			w.stats.FailingSince = now
		}
		return false
	case panicked, rejected:
		reason := Rejected
		if what == panicked {
			reason = Panicked
			w.stats.Panics++
		}
		if n > 1 {
			w.limit = n / 2
			return false
		}
		w.stats.drop(reason, w.leave(b))
		return true
	}
	if p, ok := errors.AsType[*PartialError](err); ok {
		w.stats.RefusedSpans += p.Spans
	}
	w.stats.Sent += w.leave(b)
	w.limit = min(2*w.limit, w.Batch)
	return true
}

func (w *worker) leave(b batch) uint64 {
	if b.spooled != nil {
		return uint64(b.len())
	}
	return w.remove(b.len())
}

func (w *worker) sendable() []Item {
	if w.storing {
		return w.waiting.Held()[:w.unspooled]
	}
	return w.waiting.Held()
}

// remove drops the first n items and returns how many there were: Close may have removed some.
func (w *worker) remove(n int) uint64 {
	w.unspooled = max(0, w.unspooled-n)
	return uint64(w.waiting.Remove(0, n))
}

func (w *worker) pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	case <-w.hurry:
		w.backoff.Reset()
	}
}

func (w *worker) rest(ctx context.Context, d time.Duration) {
	over := time.After(d)
	for !w.presses() {
		select {
		case <-w.wake:
			continue
		case <-over:
		case <-ctx.Done():
		case <-w.hurry:
		}
		return
	}
}

func (w *worker) presses() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closed || 2*len(w.waiting.Held()) >= w.Items || 2*w.waiting.Size() >= w.Bytes
}

type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// guard turns a sender's panic into an error.
func guard(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicError{v, debug.Stack()}
		}
	}()
	return f()
}

// reporter logs up to once a minute.
type reporter struct {
	log *slog.Logger
	// failures are consecutive; lostBefore and lostSaid are Stats.Lost before them and in the latest message.
	failures   int
	lostBefore uint64
	lostSaid   uint64
	lost       seldom
	refusals   seldom
	disk       seldom
	panicSaid  bool
}

type seldom struct{ next time.Time }

func (s *seldom) now(now time.Time) bool {
	if now.Before(s.next) {
		return false
	}
	s.next = now.Add(time.Minute)
	return true
}

// failed logs the second failure in a row: one is usually a restart.
func (r *reporter) failed(s Stats) {
	if r.failures++; r.failures == 1 {
		r.lostBefore = s.Lost()
	}
	if r.failures == 2 {
		r.log.Warn("export failed, retrying", "queued", s.Waiting, "error", s.LastError)
	}
}

func (r *reporter) works(now, since time.Time, s Stats) {
	lost := s.Lost()
	if r.failures >= 2 {
		r.log.Info("export recovered",
			"failed_for", now.Sub(since).Round(time.Millisecond), "dropped", lost-r.lostBefore)
		r.lostSaid = lost
	}
	r.failures = 0
	if lost > r.lostSaid && r.lost.now(now) {
		r.log.Warn("export dropped data", "dropped", lost-r.lostSaid, "reasons", s.Dropped, "error", s.LastError)
		r.lostSaid = lost
	}
}

func (r *reporter) refused(now time.Time, s Stats) {
	if r.refusals.now(now) {
		r.log.Warn("destination rejected spans", "refused_spans", s.RefusedSpans, "error", s.LastError)
	}
}

func (r *reporter) crashed(err error) {
	if p, ok := errors.AsType[*panicError](err); ok && !r.panicSaid {
		r.panicSaid = true
		r.log.Error("exporter panicked", "error", text.Clean(p.Error(), 2*text.Bound), "stack", string(p.stack))
	}
}
