// Package queue buffers, batches and retries items for one destination, in memory or in a spool. Adding never blocks.
package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/cniscope/cniscope/pkg/spool"
)

// Item is one operation to send.
type Item = spool.Operation

// Options configure a Queue.
type Options struct {
	Name string
	// Items bounds waiting items; default 512.
	Items int
	// Bytes bounds the size of all waiting items; default 16 MiB.
	Bytes int
	// Overhead is added to each item's size, in bytes.
	Overhead int
	// Largest bounds an item in bytes; default MaxItem.
	Largest int
	// Batch bounds items per request; default Items.
	Batch int
	// RetryFrom and RetryTo bound pauses between retries; default 500 ms and 30 s.
	RetryFrom, RetryTo time.Duration
	// Spool, if set, stores the items; the caller closes it. Items and Bytes then bound those not on disk.
	Spool *spool.Spool
	Log   *slog.Logger
}

const (
	// maxRequest bounds a request in bytes, unless one item is larger.
	maxRequest = 1 << 20
	// MaxItem is the default of Options.Largest, below the 4 MiB that gRPC servers accept.
	MaxItem = 4<<20 - 64<<10
	grace   = 2 * time.Second // for Sender.Shutdown
)

// Queue holds items until the destination accepts or refuses them. With a spool, a second goroutine writes items to
// disk, where the sender reads them. A request without an answer is sent again, so items can arrive twice.
type Queue struct {
	Options
	cancel context.CancelFunc
	wake   chan struct{} // an item can be sent
	hurry  chan struct{} // interrupts a retry pause
	done   chan struct{}
	store  chan struct{}
	stored chan struct{}

	mu      sync.Mutex // guards the fields below
	waiting spool.Memory[Item]
	// unspooled counts the first waiting items, which could not be spooled.
	unspooled int
	storing   bool
	sender    Sender   // nil drops items
	retired   []Sender // replaced senders, which the worker shuts down
	closed    bool
	stats     Stats
}

// New starts a queue that owns s. With a nil s it sends nothing until SetSender.
func New(s Sender, o Options) *Queue {
	o.Items, o.Bytes, o.Largest = cmp.Or(o.Items, 512), cmp.Or(o.Bytes, 16<<20), cmp.Or(o.Largest, MaxItem)
	o.Batch = cmp.Or(o.Batch, o.Items)
	o.RetryFrom, o.RetryTo = cmp.Or(o.RetryFrom, 500*time.Millisecond), cmp.Or(o.RetryTo, 30*time.Second)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler)).With("destination", o.Name)
	ctx, cancel := context.WithCancel(context.Background())
	q := &Queue{
		Options: o,
		sender:  s,
		waiting: spool.Memory[Item]{Bytes: func(item Item) int { return cap(item.Data) + o.Overhead }},
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

// Add queues an item, takes over its data, and reports whether there was room. It counts a refused item.
func (q *Queue) Add(item Item) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(item.Data) > q.Largest {
		q.stats.Dropped[TooLarge]++
		return false
	}
	if !q.admits(q.waiting.Bytes(item)) {
		return false
	}
	q.waiting.Add(item)
	if q.storing {
		signal(q.store)
	} else {
		signal(q.wake)
	}
	return true
}

// Admits reports whether there is room, and counts a drop if not. Callers ask before encoding.
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
	case len(q.waiting.Held()) >= q.Items || q.waiting.Size()+bytes > q.Bytes:
		q.stats.Dropped[Full]++
	default:
		return true
	}
	return false
}

// Drop counts an item that could not be encoded.
func (q *Queue) Drop(r Reason) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stats.Dropped[r]++
}

// SetSender replaces the sender, which is shut down after its current request. A nil sender drops items in memory but
// not in the spool.
func (q *Queue) SetSender(s Sender) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		go func() { _ = shutdown(s) }()
		return
	}
	if q.sender != nil {
		q.retired = append(q.retired, q.sender)
	}
	q.sender = s
	signal(q.wake)
	signal(q.hurry)
}

// Close sends items until ctx is done, then stops the queue and its sender. undelivered counts items that, as far as
// known, did not arrive and are not in the spool. ctx needs a deadline.
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
	undelivered, q.unspooled = q.waiting.Remove(0, math.MaxInt), 0
	q.stats.Dropped[Closed] += uint64(undelivered)
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

func shutdown(s Sender) error {
	if s == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	return guard(func() error { return s.Shutdown(ctx) })
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Sender sends to one destination. One goroutine at a time calls it.
type Sender interface {
	// Send sends the items in one request; again after an error other than *RejectedError and *PartialError.
	Send(ctx context.Context, items [][]byte) error
	// Shutdown releases the sender's resources. It is called once.
	Shutdown(ctx context.Context) error
}

// RejectedError means that the destination refused the items for good.
type RejectedError struct{ Err error }

func (e *RejectedError) Error() string { return "rejected: " + e.Err.Error() }

func (e *RejectedError) Unwrap() error { return e.Err }

// PartialError means that the destination stored all but Spans spans. With Spans 0 it is only a warning.
type PartialError struct {
	Spans   uint64
	Message string // the destination's text, untrusted
}

func (e *PartialError) Error() string {
	return fmt.Sprintf("%d spans refused: %s", e.Spans, e.Message)
}

// ThrottledError means that the destination asks for a pause of After.
type ThrottledError struct {
	Err   error
	After time.Duration
}

func (e *ThrottledError) Error() string { return e.Err.Error() }

func (e *ThrottledError) Unwrap() error { return e.Err }
