// Package history is the node history: a line for each of the last operations, sampled or not, and the spans of the
// last slow and failed ones. It is in memory, bounded by number and bytes.
package history

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/meter"
)

const (
	// Lines is the minimum number of lines, unless LineBytes is reached: ten hours of a node with one operation
	// every 3.5 s. Up to chunkLines more are held.
	Lines = 10_000
	// LineBytes bounds the compressed lines, which are a fifth of their JSON.
	LineBytes = 4<<20 - 2*chunkBytes

	// chunkLines is the number of lines removed at once; chunkBytes of them are collected before compression. The
	// slice may have twice that capacity.
	chunkLines = 256
	chunkBytes = 128 << 10
)

// History is the history of one node. It is safe for concurrent use.
type History struct {
	node   string
	packer packer

	mu        sync.Mutex
	chunks    []*chunk // the last one is open
	lines     int
	size      int // bytes of the full chunks
	next      uint64
	since     time.Time // all operations that ended later are held
	forgotten map[string]uint64
	changed   chan struct{} // closed when a line is added; nil without waiters
	whole     wholes
}

// New returns an empty history. Seq starts at began in ms since 1970, so that it rises over restarts.
func New(node string, began time.Time) *History {
	h := &History{
		node: node, next: uint64(max(1, began.UnixMilli())), since: began.UTC(),
		forgotten: map[string]uint64{}, whole: newWholes(),
	}
	h.chunks = []*chunk{{first: h.next}}
	return h
}

// Add numbers and stores a line.
func (h *History) Add(l control.Line) {
	h.mu.Lock()
	defer h.mu.Unlock()
	open := h.chunks[len(h.chunks)-1]
	if open.add(bounded(l)) != nil {
		return
	}
	h.next++
	h.lines++
	if l.Time.Before(h.since) { // the clock was set back
		h.since = l.Time.UTC()
	}
	if open.lines >= chunkLines || len(open.data) >= chunkBytes {
		open.data, open.full = h.packer.pack(open.data), true
		h.size += cap(open.data)
		h.chunks = append(h.chunks, &chunk{first: h.next})
	}
	for len(h.chunks) > 1 {
		first := h.chunks[0]
		switch {
		case h.lines-first.lines >= Lines:
			h.forget("lines")
		case h.size > LineBytes:
			h.forget("bytes")
		default:
			h.wake()
			return
		}
	}
	h.wake()
}

// forget removes the oldest chunk.
func (h *History) forget(why string) {
	first := h.chunks[0]
	h.chunks[0] = nil
	h.chunks = h.chunks[1:]
	h.lines -= first.lines
	h.size -= cap(first.data)
	h.forgotten[why] += uint64(first.lines)
	if first.ended.After(h.since) {
		h.since = first.ended.UTC()
	}
	for _, c := range h.chunks { // the clock was set back after the first chunk, so its times are in the future of the others
		if c.lines > 0 && c.began.Before(h.since) {
			h.since = c.began.UTC()
		}
	}
}

func (h *History) wake() {
	if h.changed != nil {
		close(h.changed)
		h.changed = nil
	}
}

type view struct {
	node   string
	chunks []chunk
	next   uint64
	since  time.Time
	// changed is closed when a line is added.
	changed <-chan struct{}
}

func (h *History) look() view {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.changed == nil {
		h.changed = make(chan struct{})
	}
	v := view{node: h.node, next: h.next, since: h.since, changed: h.changed}
	for _, c := range h.chunks {
		v.chunks = append(v.chunks, *c)
	}
	return v
}

// Operations returns the lines that match q. If there are none it waits up to q.Wait, or until ctx ends.
func (h *History) Operations(ctx context.Context, q control.Query) control.Found {
	late := time.NewTimer(min(q.Wait, control.MaxWait))
	defer late.Stop()
	v := h.look()
	if q.After >= v.next { // from an earlier process whose clock was ahead
		q.After = 0
	}
	from := q
	for q.Wait > 0 {
		if from.After = max(from.After, v.first()-1); v.any(from) {
			break
		}
		from.After = v.next - 1 // skip the lines already checked
		select {
		case <-v.changed:
		case <-late.C:
			return h.look().found(q)
		case <-ctx.Done():
			return h.look().found(q)
		}
		v = h.look()
	}
	return v.found(q)
}

func (v view) first() uint64 { return v.chunks[0].first }

// lines yields the lines that match q, without its limit. of also counts those that Problems excludes.
func (v view) lines(q control.Query, of *int) iter.Seq[control.Line] {
	return func(yield func(control.Line) bool) {
		for i := range v.chunks {
			c := &v.chunks[i]
			if c.lines == 0 || c.first+uint64(c.lines) <= q.After+1 || c.ended.Before(q.Since) {
				continue
			}
			if !c.each(v.node, q.After, func(l control.Line) bool {
				if !wants(q, l) {
					return true
				}
				*of++
				return q.Problems && l.Result == control.Ordinary || yield(l)
			}) {
				return
			}
		}
	}
}

func wants(q control.Query, l control.Line) bool {
	return !l.Time.Before(q.Since) &&
		(q.Namespace == "" || q.Namespace == l.Namespace) && (q.Pod == "" || q.Pod == l.Pod)
}

func (v view) any(q control.Query) bool {
	for range v.lines(q, new(int)) {
		return true
	}
	return false
}

// found returns the answer. Its lines are decompressed only when iterated, since all lines are about 6 MB.
func (v view) found(q control.Query) control.Found {
	f := control.Found{Next: v.next - 1, Since: v.since}
	if missing := int64(v.first()) - int64(q.After) - 1; q.After > 0 && missing > 0 {
		f.Forgotten = uint64(missing)
	}
	total, last := 0, q.After
	for l := range v.lines(q, &f.Of) {
		if total++; q.After == 0 || q.Limit == 0 || total <= q.Limit {
			last = l.Seq
		}
	}
	skip := 0
	if q.Limit > 0 && total > q.Limit {
		if q.After > 0 {
			f.Next = last
		} else {
			skip = total - q.Limit
		}
	}
	f.Lines = func(yield func(control.Line) bool) {
		n := 0
		for l := range v.lines(q, new(int)) {
			n++
			if n <= skip {
				continue
			}
			if q.Limit > 0 && n > skip+q.Limit || !yield(l) {
				return
			}
		}
	}
	return f
}

// Readings returns the history's metrics.
func (h *History) Readings() []meter.Reading {
	h.mu.Lock()
	defer h.mu.Unlock()
	const name, help = "history_forgotten_total", "Operations that left the node history, by the full limit. With bytes the history is shorter than 10,000 operations."
	counts := map[string]uint64{}
	for why, n := range h.forgotten {
		counts[why] += n
	}
	for why, n := range h.whole.forgotten {
		counts[why] += n
	}
	return append(meter.ByReason(name, help, counts, []string{"lines", "bytes", "whole_operations", "whole_bytes", "large"}),
		meter.Level("history_operations", "Operations in the node history, one line each.", h.lines),
		meter.Level("history_whole_operations", "Slow and failed operations that the node history holds with all spans.", len(h.whole.held)),
		meter.Level("history_bytes", "Memory of the node history.", h.size+cap(h.chunks[len(h.chunks)-1].data)+h.whole.size))
}
