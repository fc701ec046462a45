// Package queue holds what waits to be sent to one place: it bounds what waits, batches, retries, counts
// what is lost, and never blocks whoever hands it something. With a spool what waits is on disk.
package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/cniscope/cniscope/pkg/spool"
)

// Item is one thing that waits.
type Item struct {
	// Start and End are when what it tells of began and ended; a spool finds it by that.
	Start, End time.Time
	Data       []byte
}

// Options bound a Queue. What is zero has the default that is named.
type Options struct {
	// Name is the destination's in the log and in Stats: "otlp", "file".
	Name string
	// Does says in the log what fails and works again. "the export".
	Does string
	// Items is how many wait at most. 512.
	Items int
	// Bytes is how much they may hold in all. 16 MiB: 512 operations of 60 spans of half a kilobyte.
	Bytes int
	// Overhead is what an item counts for besides its bytes, so that empty ones fill the queue, too. 0.
	Overhead int
	// Largest is the largest item that is sent at all, in bytes. 4 MiB less 64 KiB: gRPC
	// servers refuse messages of more than 4 MiB unless told otherwise.
	Largest int
	// Batch is how many items are sent together at most. As many as wait.
	Batch int
	// RetryFrom and RetryTo are the pause after the first failure and the longest
	// one, jitter included. 500 ms and 30 s.
	RetryFrom, RetryTo time.Duration
	// Spool, if set, is where items wait, so that they outlive the process; Items and Bytes are then for
	// those that are on their way to it, or cannot be written. The queue does not close it.
	Spool *spool.Spool
	Log   *slog.Logger // Log is told when the destination goes bad and when it is back.
}

const (
	// MaxRequest is up to where items are sent together, in bytes.
	MaxRequest = 1 << 20
	// MaxItem is the default of Options.Largest.
	MaxItem = 4<<20 - 64<<10
	grace   = 2 * time.Second // grace is how long a sender may take to notice that it is over.
)

// Queue holds items until their destination has taken them. One goroutine sends; an item
// stays in the queue until it has arrived, was refused, or Close gave up. A request whose
// answer was lost is sent again: then an item may arrive twice.
//
// With a spool another goroutine writes down what comes, and what is sent is read from there; only what
// cannot be written is sent from memory. Close leaves in the spool what did not arrive. What the process
// was killed over is sent again, by the next one, if the answer had come and was not noted yet.
type Queue struct {
	Options
	cancel context.CancelFunc // ends the request in progress
	wake   chan struct{}      // there is something to send
	hurry  chan struct{}      // do not wait for the next retry
	done   chan struct{}      // the worker has ended
	store  chan struct{}      // there is something to write down
	stored chan struct{}      // nothing more is written down

	mu sync.Mutex // of all below
	waiting
	storing bool     // something may still get into the spool
	sender  Sender   // nil: nothing is wanted
	retired []Sender // to be shut down by the worker
	closed  bool
	stats   Stats
}

// waiting is what the queue holds in memory.
type waiting struct {
	incoming []Item   // to be written down
	items    [][]byte // to be sent; the first ones are on their way
	bytes    int      // of both
}

// New starts a queue in front of s, which it owns from now on. With a nil s nothing is sent, and
// nothing kept without a spool, until SetSender. Close ends it.
func New(s Sender, o Options) *Queue {
	o.Does = cmp.Or(o.Does, "the export")
	o.Items, o.Bytes, o.Largest = cmp.Or(o.Items, 512), cmp.Or(o.Bytes, 16<<20), cmp.Or(o.Largest, MaxItem)
	o.Batch = cmp.Or(o.Batch, o.Items)
	o.RetryFrom, o.RetryTo = cmp.Or(o.RetryFrom, 500*time.Millisecond), cmp.Or(o.RetryTo, 30*time.Second)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler)).With("destination", o.Name)
	ctx, cancel := context.WithCancel(context.Background())
	q := &Queue{
		Options: o,
		sender:  s,
		cancel:  cancel,
		wake:    make(chan struct{}, 1),
		hurry:   make(chan struct{}, 1),
		done:    make(chan struct{}),
		store:   make(chan struct{}, 1),
		stored:  make(chan struct{}),
		storing: o.Spool != nil,
		stats:   Stats{Name: o.Name, Dropped: map[Reason]uint64{}},
	}
	if q.storing {
		if o.Spool.Found().Cut > 0 {
			q.stats.Dropped[Damaged]++
		}
		go (&storer{Queue: q, synced: time.Now()}).run(ctx)
	} else {
		close(q.stored)
	}
	go newWorker(q).run(ctx)
	return q
}

// Add hands over one item and reports whether it was taken. It does not block; what is not taken
// is counted. The data is the queue's from now on.
func (q *Queue) Add(item Item) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	size := len(item.Data) + q.Overhead
	if len(item.Data) > q.Largest {
		q.stats.Dropped[TooLarge]++
		return false
	}
	if !q.admits(size) {
		return false
	}
	q.bytes += size
	if q.storing {
		q.incoming = append(q.incoming, item)
		signal(q.store)
		return true
	}
	q.items = append(q.items, item.Data)
	signal(q.wake)
	return true
}

// Admits reports whether there is a place for another item, and counts it if there is none: ask it
// before what costs something.
func (q *Queue) Admits() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.admits(0)
}

func (q *Queue) admits(bytes int) bool {
	switch {
	case q.closed:
		q.stats.Dropped[Closed]++
	case q.sender == nil && q.Spool == nil:
		q.stats.Unwanted++
	case len(q.items)+len(q.incoming) >= q.Items || q.bytes+bytes > q.Bytes:
		q.stats.Dropped[Full]++
	default:
		return true
	}
	return false
}

// Drop counts an item that could not be made.
func (q *Queue) Drop(r Reason) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stats.Dropped[r]++
}

// SetSender sends what waits, and all that comes, by s from now on; the one
// before is shut down when it is done with what it is sending. With nil, what
// waits in memory is dropped, and what is in the spool stays there.
func (q *Queue) SetSender(s Sender) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		go func() { _ = shutdown(s) }() // too late for it
		return
	}
	if q.sender != nil {
		q.retired = append(q.retired, q.sender)
	}
	q.sender = s
	signal(q.wake)
	signal(q.hurry)
}

// Close sends what waits until ctx is done, ends the queue and its sender, and
// returns how many items did not arrive, as far as is known, and are in no spool.
// Give ctx a deadline: a destination that cannot be reached is tried until then.
func (q *Queue) Close(ctx context.Context) (undelivered int, err error) {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	signal(q.wake)
	signal(q.hurry)
	signal(q.store)

	if !ended(ctx, q.stored, q.done) {
		q.cancel()
		late, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		if !ended(late, q.done) {
			err = errors.New("queue " + q.Name + ": the sender does not stop")
		}
		if !ended(late, q.stored) {
			err = errors.Join(err, errors.New("queue "+q.Name+": the disk of the spool does not answer"))
		}
	}
	q.cancel()

	q.mu.Lock()
	undelivered = len(q.items) + len(q.incoming)
	q.stats.Dropped[Closed] += uint64(undelivered)
	q.items, q.incoming, q.bytes = nil, nil, 0
	last := slices.Concat(q.retired, []Sender{q.sender})
	q.retired, q.sender = nil, nil
	q.mu.Unlock()
	for _, s := range last {
		err = errors.Join(err, shutdown(s))
	}
	return undelivered, err
}

func ended(ctx context.Context, ends ...chan struct{}) bool {
	for _, end := range ends {
		select {
		case <-end:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// shutdown ends a sender that is not in use.
func shutdown(s Sender) error {
	if s == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	return guard(func() error { return s.Shutdown(ctx) })
}

// signal leaves a note on a channel that holds one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Sender sends to one destination. One goroutine at a time uses it.
type Sender interface {
	// Send sends the items in one request. The error is a *RejectedError where trying again is of no use, a
	// *PartialError where the rest has arrived, a *ThrottledError where the destination says when to come
	// back; with any other nothing has arrived, or it is not known, and the same may be tried again.
	Send(ctx context.Context, items [][]byte) error
	// Shutdown lets go of what the sender holds. It is called once, at the end.
	Shutdown(ctx context.Context) error
}

// RejectedError says that the destination does not take these spans, now or later.
type RejectedError struct{ Err error }

func (e *RejectedError) Error() string { return "rejected: " + e.Err.Error() }

// Unwrap returns what the destination said.
func (e *RejectedError) Unwrap() error { return e.Err }

// PartialError says that the spans have arrived, but for some. With no span refused it is a warning.
type PartialError struct {
	// Spans is how many were refused.
	Spans   uint64
	Message string // Message is the destination's; foreign text.
}

func (e *PartialError) Error() string {
	return fmt.Sprintf("%d spans refused: %s", e.Spans, e.Message)
}

// ThrottledError says that the destination asked for time.
type ThrottledError struct {
	Err   error
	After time.Duration
}

func (e *ThrottledError) Error() string { return e.Err.Error() }

// Unwrap returns what the destination said.
func (e *ThrottledError) Unwrap() error { return e.Err }
