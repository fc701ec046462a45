package logging

import (
	"context"
	"io"
	"slices"
	"sync/atomic"
)

// lines bounds the buffer in lines of about 500 bytes, for a slow reader such as a stopped pipe or a journal on a
// hanging disk.
const lines = 1024

// Writer passes lines to another writer without waiting for it. It drops and counts lines that do not fit, and
// reports them once they do.
type Writer struct {
	to      io.Writer
	waiting chan []byte
	dropped atomic.Uint64 // total
	said    uint64        // of dropped
	say     func(dropped uint64)
	end     chan struct{}
	ended   chan struct{}
}

// NewWriter starts writing to w. Between two lines it calls say with the number of dropped lines; say writes to w
// directly.
func NewWriter(w io.Writer, say func(dropped uint64)) *Writer {
	n := &Writer{to: w, waiting: make(chan []byte, lines), say: say, end: make(chan struct{}), ended: make(chan struct{})}
	go n.run()
	return n
}

// Write queues a copy of a line. It never fails.
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

// Close writes queued lines until ctx is done and reports whether all were written. Call it once; later lines are
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
	if _, err := w.to.Write(line); err != nil { // the reader is gone: report the loss to the next one
		w.dropped.Add(1)
		return
	}
	if n := w.Dropped(); n > w.said {
		w.say(n - w.said)
		w.said = n
	}
}
