package logging

import (
	"context"
	"io"
	"slices"
	"sync/atomic"
)

// lines is how many may wait for a reader that is slow: a pipe whose other end has
// stopped, a journal on a disk that hangs. Of some 500 bytes each.
const lines = 1024

// Writer hands lines on to another writer and never waits for it. What finds no place is
// dropped and counted, and said when there is place again.
type Writer struct {
	to      io.Writer
	waiting chan []byte
	dropped atomic.Uint64 // in all
	said    uint64        // of them
	say     func(dropped uint64)
	end     chan struct{}
	ended   chan struct{}
}

// NewWriter begins to write to w. It calls say between two lines, with how many were
// dropped: whoever says it writes to w directly.
func NewWriter(w io.Writer, say func(dropped uint64)) *Writer {
	n := &Writer{to: w, waiting: make(chan []byte, lines), say: say, end: make(chan struct{}), ended: make(chan struct{})}
	go n.run()
	return n
}

// Write takes a copy of a line. It never fails.
func (w *Writer) Write(line []byte) (int, error) {
	select {
	case w.waiting <- slices.Clone(line):
	default:
		w.dropped.Add(1)
	}
	return len(line), nil
}

// Dropped is how many lines were dropped so far.
func (w *Writer) Dropped() uint64 { return w.dropped.Load() }

// Close writes what waits until ctx is done, and reports whether that was all. It is
// called once; what is written afterwards is dropped.
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
	if _, err := w.to.Write(line); err != nil { // its reader is gone: said when there is another one
		w.dropped.Add(1)
		return
	}
	if n := w.Dropped(); n > w.said {
		w.say(n - w.said)
		w.said = n
	}
}
