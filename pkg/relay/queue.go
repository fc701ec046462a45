package relay

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/cniscope/cniscope/pkg/text"
)

// overhead is what a request counts for besides its bytes, so that empty ones fill the
// queue, too.
const overhead = 256

// queue holds requests until the upstream has taken them, in their order.
type queue struct {
	options Options
	cancel  context.CancelFunc // ends the request in progress
	wake    chan struct{}      // there is something to do
	hurry   chan struct{}      // do not wait for the next retry
	done    chan struct{}

	mu      sync.Mutex
	waiting []request
	bytes   int
	way     *way // nil: there is nowhere to go
	closed  bool
	stats   Forwarding
}

func newQueue(o Options) *queue {
	orElse(&o.Bytes, 16<<20)
	orElse(&o.RetryFrom, 500*time.Millisecond)
	orElse(&o.RetryTo, 30*time.Second)
	ctx, cancel := context.WithCancel(context.Background())
	q := &queue{
		options: o, cancel: cancel, done: make(chan struct{}),
		wake: make(chan struct{}, 1), hurry: make(chan struct{}, 1),
		stats: Forwarding{Dropped: map[Reason]uint64{}},
	}
	go q.run(ctx)
	return q
}

func orElse[T comparable](v *T, otherwise T) {
	if *v == *new(T) {
		*v = otherwise
	}
}

// add keeps a request, or drops and counts it. It does not wait.
func (q *queue) add(r request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	size := len(r.body) + overhead
	switch {
	case q.closed:
		q.stats.Dropped[Closed]++
	case q.way == nil:
		q.stats.Dropped[Nowhere]++
	case q.bytes+size > q.options.Bytes:
		q.stats.Dropped[Full]++
	default:
		q.waiting = append(q.waiting, r)
		q.bytes += size
		signal(q.wake)
	}
}

// signal leaves a note on a channel that holds one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (q *queue) set(u *Upstream) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.way != nil {
		q.way.client.CloseIdleConnections()
	}
	q.way = nil
	if u != nil {
		q.way = newWay(*u, q.options.Listen)
	} else {
		q.stats.Dropped[Nowhere] += q.remove(len(q.waiting))
	}
	signal(q.wake)
	signal(q.hurry)
}

func (q *queue) remove(n int) uint64 {
	n = min(n, len(q.waiting))
	for i := range n {
		q.bytes -= len(q.waiting[i].body) + overhead
		q.waiting[i] = request{} // the array behind it lives on
	}
	q.waiting = q.waiting[n:]
	return uint64(n)
}

// next returns what is to be sent now, if anything is; more is false at the end.
func (q *queue) next() (w *way, r request, something, more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 || q.way == nil {
		return nil, request{}, false, !q.closed
	}
	return q.way, q.waiting[0], true, true
}

// run sends one request after another. Containerd makes one in five seconds, or one of
// 512 spans.
func (q *queue) run(ctx context.Context) {
	defer close(q.done)
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval = q.options.RetryFrom
	pause.MaxInterval = time.Duration(float64(q.options.RetryTo) / (1 + pause.RandomizationFactor)) // it is before jitter
	failing := outage{log: q.options.Log}
	for {
		w, r, something, more := q.next()
		switch {
		case !more || ctx.Err() != nil:
			return
		case !something:
			select {
			case <-q.wake:
			case <-ctx.Done():
			}
			continue
		}
		err := w.send(ctx, r)
		if ctx.Err() != nil && err != nil {
			return // cut off by close: it counts as undelivered
		}
		q.settle(err)
		failing.note(err, q.snapshot())
		if again(err) {
			q.pause(ctx, pause.NextBackOff())
		} else {
			pause.Reset()
		}
	}
}

// again tells whether a request that ended with err is to be sent again.
func again(err error) bool {
	var refused refusedError
	return err != nil && !errors.As(err, &refused)
}

func (q *queue) settle(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err != nil {
		q.stats.LastError = text.Clean(err.Error(), 2*text.Bound)
	}
	switch {
	case err == nil:
		q.stats.Forwarded += q.remove(1)
	case again(err):
		q.stats.Retries++
	default:
		q.stats.Dropped[Refused] += q.remove(1)
	}
}

// pause waits for a retry to be due, or for a reason not to wait. A request that comes in
// is none: the pauses would be those between containerd's exports.
func (q *queue) pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-q.hurry:
	case <-ctx.Done():
	}
}

// close sends what waits until ctx is done, and returns how many did not arrive.
func (q *queue) close(ctx context.Context) int {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	signal(q.wake)
	signal(q.hurry)
	select {
	case <-q.done:
	case <-ctx.Done():
	}
	q.cancel()
	<-q.done
	q.mu.Lock()
	defer q.mu.Unlock()
	left := q.remove(len(q.waiting))
	q.stats.Dropped[Closed] += left
	if q.way != nil {
		q.way.client.CloseIdleConnections()
	}
	return int(left)
}

func (q *queue) snapshot() Forwarding {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.stats
	s.Dropped = maps.Clone(s.Dropped)
	s.Waiting, s.WaitingBytes = len(q.waiting), q.bytes
	return s
}
