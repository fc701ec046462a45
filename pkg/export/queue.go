package export

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/cniscope/cniscope/pkg/spool"
)

// QueueOptions bound a Queue. What is zero has the default that is named.
type QueueOptions struct {
	// Name is the destination's in the log and in Stats: "otlp", "file".
	Name string
	// Operations is how many wait at most. 512.
	Operations int
	// Bytes is how much they may hold in all, as protobuf. 16 MiB: 512 operations of
	// 60 spans of half a kilobyte.
	Bytes int
	// RetryFrom and RetryTo are the pause after the first failure and the longest
	// one, jitter included. 500 ms and 30 s.
	RetryFrom, RetryTo time.Duration
	// Spool, if set, is where operations wait, so that they outlive the process; Operations
	// and Bytes are then for those that are on their way to it, or cannot be written. The
	// queue does not close it.
	Spool *spool.Spool
	// Log is told when the destination goes bad and when it is back.
	Log *slog.Logger
}

const (
	// maxRequest is up to where operations are put into one request, in bytes.
	maxRequest = 1 << 20
	// maxOperation is the largest operation that is sent at all, in bytes: gRPC
	// servers refuse messages of more than 4 MiB unless told otherwise.
	maxOperation = 4<<20 - 64<<10
	// grace is how long an exporter may take to notice that it is over.
	grace = 2 * time.Second
)

// Queue holds finished operations until their destination has taken them. One
// goroutine sends; an operation stays in the queue until it has arrived, was
// refused, or Close gave up. A request whose answer was lost is sent again: then
// an operation may arrive twice, its spans with the same ids.
//
// With a spool another goroutine writes down what comes, and what is sent is read from
// there; only what cannot be written is sent from memory. Close leaves in the spool what
// did not arrive. What the process was killed over is sent again, by the next one, if
// the answer had come and was not noted yet.
type Queue struct {
	QueueOptions
	cancel context.CancelFunc // ends the export in progress
	wake   chan struct{}      // there is something to send
	hurry  chan struct{}      // do not wait for the next retry
	done   chan struct{}      // the worker has ended
	store  chan struct{}      // there is something to write down
	stored chan struct{}      // nothing more is written down

	mu       sync.Mutex
	incoming []spool.Operation // to be written down
	storing  bool              // something may still get into the spool
	items    [][]byte          // waiting operations, as TracesData; the first ones are on their way
	bytes    int               // of incoming and items
	exporter Exporter          // nil: nothing is wanted
	retired  []Exporter        // to be shut down by the worker
	closed   bool
	stats    Stats
}

// NewQueue starts a queue in front of e, which it owns from now on. With a nil e
// nothing is exported, and nothing counted, until SetExporter. Close ends it.
func NewQueue(e Exporter, o QueueOptions) *Queue {
	orElse(&o.Operations, 512)
	orElse(&o.Bytes, 16<<20)
	orElse(&o.RetryFrom, 500*time.Millisecond)
	orElse(&o.RetryTo, 30*time.Second)
	orElse(&o.Log, slog.New(slog.DiscardHandler))
	o.Log = o.Log.With("exporter", o.Name)
	ctx, cancel := context.WithCancel(context.Background())
	q := &Queue{
		QueueOptions: o,
		exporter:     e,
		cancel:       cancel,
		wake:         make(chan struct{}, 1),
		hurry:        make(chan struct{}, 1),
		done:         make(chan struct{}),
		store:        make(chan struct{}, 1),
		stored:       make(chan struct{}),
		storing:      o.Spool != nil,
		stats:        Stats{Name: o.Name, Dropped: map[Reason]uint64{}},
	}
	if q.storing {
		if o.Spool.Found().Cut > 0 {
			q.stats.Dropped[Damaged]++
		}
		go newStorer(q).run(ctx)
	} else {
		close(q.stored)
	}
	go newWorker(q).run(ctx)
	return q
}

func orElse[T comparable](v *T, otherwise T) {
	if *v == *new(T) {
		*v = otherwise
	}
}

// Enqueue hands over one operation and reports whether it was taken. It does not
// block; what is not taken is counted. The spans are not kept: they may change
// afterwards.
func (q *Queue) Enqueue(spans []*tracepb.ResourceSpans) bool {
	if !q.open(0) {
		return false
	}
	data, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil { // a text that is not UTF-8
		q.drop(Invalid)
		return false
	}
	if len(data) > maxOperation {
		q.drop(TooLarge)
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.admits(len(data)) {
		return false
	}
	q.bytes += len(data)
	if q.storing {
		start, end := extent(spans)
		q.incoming = append(q.incoming, spool.Operation{Start: start, End: end, Data: data})
		signal(q.store)
		return true
	}
	q.items = append(q.items, data)
	signal(q.wake)
	return true
}

func (q *Queue) open(bytes int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.admits(bytes)
}

// admits reports whether an operation may come in, and counts it if it may not.
func (q *Queue) admits(bytes int) bool {
	switch {
	case q.closed:
		q.stats.Dropped[Closed]++
	case q.exporter == nil && q.Spool == nil:
	case len(q.items)+len(q.incoming) >= q.Operations || q.bytes+bytes > q.Bytes:
		q.stats.Dropped[Full]++
	default:
		return true
	}
	return false
}

func (q *Queue) drop(r Reason) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stats.Dropped[r]++
}

// SetExporter sends what waits, and all that comes, by e from now on; the one
// before is shut down when it is done with what it is sending. With nil, what
// waits in memory is dropped, and what is in the spool stays there.
func (q *Queue) SetExporter(e Exporter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		go func() { _ = shutdown(e) }() // too late for it
		return
	}
	if q.exporter != nil {
		q.retired = append(q.retired, q.exporter)
	}
	q.exporter = e
	signal(q.wake)
	signal(q.hurry)
}

// Close sends what waits until ctx is done, ends the queue and its exporter, and
// returns how many operations did not arrive, as far as is known, and are in no spool.
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
			err = errors.New("export " + q.Name + ": the exporter does not stop")
		}
		if !ended(late, q.stored) {
			err = errors.Join(err, errors.New("export "+q.Name+": the disk of the spool does not answer"))
		}
	}
	q.cancel()

	q.mu.Lock()
	undelivered = len(q.items) + len(q.incoming)
	q.stats.Dropped[Closed] += uint64(undelivered)
	q.items, q.incoming, q.bytes = nil, nil, 0
	last := slices.Concat(q.retired, []Exporter{q.exporter})
	q.retired, q.exporter = nil, nil
	q.mu.Unlock()
	for _, e := range last {
		err = errors.Join(err, shutdown(e))
	}
	return undelivered, err
}

// ended waits for the ends of goroutines, and reports whether they came before ctx was
// done.
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

// shutdown ends an exporter that is not in use.
func shutdown(e Exporter) error {
	if e == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	return guard(func() error { return e.Shutdown(ctx) })
}

// signal leaves a note on a channel that holds one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
