package logging

import (
	"context"
	"io"
	"slices"
	"sync/atomic"
)

// lines is of about 500 bytes: a pipe may be stopped, or a journal's disk hang.
const lines = 1024

// Writer passes lines on without waiting. It drops what does not fit, and reports the count later.
type Writer struct {
	to      io.Writer
	waiting chan []byte
	dropped atomic.Uint64
	said    uint64
	say     func(dropped uint64)
	end     chan struct{}
	ended   chan struct{}
}

// NewWriter writes to w. Between lines it calls say, which writes to w directly.
func NewWriter(w io.Writer, say func(dropped uint64)) *Writer {
	n := &Writer{to: w, waiting: make(chan []byte, lines), say: say, end: make(chan struct{}), ended: make(chan struct{})}
	go n.run()
	return n
}

// Write queues a copy and never fails.
func (w *Writer) Write(line []byte) (int, error) {
	select {
	case w.waiting <- slices.Clone(line):
	default:
		w.dropped.Add(1)
	}
	return len(line), nil
}

// Dropped returns the number of dropped lines.
func (w *Writer) Dropped() uint64 { return w.dropped.Load() }

// Close writes queued lines until ctx is done and returns whether all were written. Call it once; later lines are
// dropped.
func (w *Writer) Close(ctx context.Context) bool {
	close(w.end)
	select {
	case <-w.ended:
		return true
	case <-ctx.Done():
		return false
	}
}

func (w *Writer) run() {
	defer close(w.ended)
	for {
		select {
		case line := <-w.waiting:
			w.write(line)
		case <-w.end:
			for len(w.waiting) > 0 {
				w.write(<-w.waiting)
			}
			return
		}
	}
}

func (w *Writer) write(line []byte) {
	if _, err := w.to.Write(line); err != nil { // no reader: report the loss to the next
		w.dropped.Add(1)
		return
	}
	if n := w.Dropped(); n > w.said {
		w.say(n - w.said)
		w.said = n
	}
}
