package subprocess

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/anchor"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/privilege"
	"github.com/cniscope/cniscope/pkg/probe/connector"
	"github.com/cniscope/cniscope/pkg/probe/proctracker"
	"github.com/cniscope/cniscope/pkg/record"
)

const (
	// growth of the heap in percent (at least 16 MiB) forces a garbage collection. garbageMax usually comes first,
	// while no plugin runs.
	growth     = 400
	garbageMax = 2 << 20
	// more threads than goroutines, so that the reader never waits for one
	turns = 4
)

// Serve reads orders from standard input until it ends, and writes events to standard output and messages to file 3.
func Serve() error {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP) // the parent ends us
	runtime.GOMAXPROCS(turns)
	debug.SetGCPercent(growth)
	hurry()
	return serve(os.Stdin, os.Stdout, os.NewFile(3, "said"))
}

// hurry prioritizes all threads (CAP_SYS_NICE): the reader waits for the garbage collector's.
func hurry() {
	realtime := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}
	for range 2 { // a thread may start another
		threads, _ := os.ReadDir("/proc/self/task")
		for _, thread := range threads {
			if id, err := strconv.Atoi(thread.Name()); err == nil {
				_ = unix.SchedSetAttr(id, &realtime, 0)
			}
		}
	}
}

type server struct {
	orders  *json.Decoder
	anchors *anchor.Set
	busy    atomic.Bool
	to      io.Writer
	last    bytes.Buffer
	// bytes allocated until the last garbage collection
	allocated uint64
}

func serve(orders io.Reader, events, says io.Writer) error {
	s := &server{orders: json.NewDecoder(orders), anchors: anchor.New(), to: says}
	var first order
	if err := s.orders.Decode(&first); err != nil || first.Options == nil {
		return errors.Join(errors.New("cniscope starts this itself; there is nothing to be done by hand"), err)
	}
	o := *first.Options
	o.Anchors, o.Busy, o.Tend, o.Log = s.anchors, s.busy.Load, s.tend, slog.New(slog.DiscardHandler)
	c, err := connector.Open(o)
	if refused, is := errors.AsType[*connector.UnsupportedError](err); is {
		no := said{Need: refused.Need, Remedy: refused.Remedy}
		if refused.Err != nil {
			no.Error = refused.Err.Error()
		}
		return json.NewEncoder(says).Encode(no)
	}
	if err != nil {
		return err
	}
	_, _ = privilege.Drop(true) // reported by the parent
	if err := json.NewEncoder(says).Encode(said{}); err != nil {
		return errors.Join(err, c.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go s.obey(cancel)
	return errors.Join(s.run(ctx, cancel, c, events), c.Close())
}

func (s *server) run(ctx context.Context, cancel func(), c *connector.Connector, to io.Writer) error {
	var text bytes.Buffer
	w, err := record.NewWriter(&text, record.Header{})
	if err != nil {
		return err
	}
	out, sent := newOutbox(), make(chan error, 1)
	go func() {
		defer cancel() // the reader is gone
		sent <- out.send(to)
	}()
	var waiting, lost uint64
	err = c.Run(ctx, func(e event.Event) {
		if lost > 0 && waiting == 0 {
			_ = w.Write(event.Event{Time: e.Time, Body: &event.Lost{Source: "probe", Reason: proctracker.LostNotices, Count: lost}})
		}
		_ = w.Write(e) // bounded content
		waiting++
		switch e.Body.(type) {
		case *event.Tick, *event.Degraded:
			_ = w.Flush()
			if out.put(text.Bytes()) {
				lost = 0
			} else {
				lost += waiting
			}
			text.Reset()
			waiting = 0
		}
	})
	out.close()
	return errors.Join(err, <-sent)
}

func (s *server) obey(end func()) {
	defer end()
	for {
		var o order
		if s.orders.Decode(&o) != nil {
			return
		}
		if o.Anchors != nil {
			s.anchors.Are(o.Anchors)
		} else {
			s.busy.Store(o.Busy)
		}
	}
}

func (s *server) tend(now connector.Stats, quiet bool) {
	var line bytes.Buffer
	if json.NewEncoder(&line).Encode(said{Stats: &now}) == nil && !bytes.Equal(line.Bytes(), s.last.Bytes()) {
		_, _ = s.to.Write(line.Bytes())
		s.last = line
	}
	if !quiet {
		return
	}
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	if n := sample[0].Value.Uint64(); n-s.allocated > garbageMax {
		s.allocated = n
		runtime.GC()
	}
}

// outboxMax is in bytes, for about 8,000 programs.
const outboxMax = 8 << 20

// outbox never blocks its one writer.
type outbox struct {
	batches chan []byte
	size    atomic.Int64 // of the batches
}

func newOutbox() *outbox { return &outbox{batches: make(chan []byte, 4096)} }

// put queues a copy or, without room, nothing.
func (o *outbox) put(b []byte) bool {
	if o.size.Load()+int64(len(b)) > outboxMax || len(o.batches) == cap(o.batches) {
		return false
	}
	o.size.Add(int64(len(b)))
	o.batches <- bytes.Clone(b)
	return true
}

func (o *outbox) close() { close(o.batches) }

func (o *outbox) send(to io.Writer) error {
	for b := range o.batches {
		if _, err := to.Write(b); err != nil {
			return err
		}
		o.size.Add(-int64(len(b)))
	}
	return nil
}
