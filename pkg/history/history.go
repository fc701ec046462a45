// Package history is the bounded node history in memory: a line for each of the last operations, and the spans of the
// last slow and failed ones.
package history

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/meter"
	"github.com/cniscope/cniscope/pkg/spool"
)

const (
	// Lines is the minimum number of lines held, unless lineBytes is reached: ten hours at one operation every 3.5 s. Up
	// to chunkLines more are held.
	Lines = 10_000
	// lineBytes bounds the compressed lines, which are a fifth of their JSON.
	lineBytes = 4<<20 - 2*chunkBytes

	// chunkLines are removed at once; chunkBytes are collected before compression, up to twice that.
	chunkLines = 256
	chunkBytes = 128 << 10
)

// History is the history of one node. It is safe for concurrent use.
type History struct {
	node   string
	packer packer

	mu        sync.Mutex
	lines     spool.Memory[chunk] // compressed
	whole     spool.Memory[spans]
	open      chunk // its data is append-only, so that readers need no copy
	next      uint64
	since     time.Time // all later operations are held
	forgotten map[string]uint64
	changed   chan struct{} // closed by Add; nil without waiters
}

// New returns an empty history. Seq starts at began in ms since 1970, so it rises over restarts.
func New(node string, began time.Time) *History {
	first := uint64(max(1, began.UnixMilli()))
	return &History{
		node: node, open: chunk{first: first}, next: first, since: began.UTC(), forgotten: map[string]uint64{},
		lines: spool.Memory[chunk]{Bytes: func(c chunk) int { return cap(c.data) }},
		whole: spool.Memory[spans]{Bytes: func(s spans) int { return cap(s.data) + wholeEntry }},
	}
}

// Add numbers and stores a line.
func (h *History) Add(l control.Line) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open.add(l.Clean(nameBytes, saidBytes)) != nil {
		return
	}
	h.next++
	if l.Time.Before(h.since) {
		h.since = l.Time.UTC()
	}
	if h.open.lines >= chunkLines || len(h.open.data) >= chunkBytes {
		h.open.data = h.packer.pack(h.open.data)
		h.lines.Add(h.open)
		h.open = chunk{first: h.next}
	}
	for all := h.lines.Held(); len(all) > 0; all = h.lines.Held() {
		if first := all[0]; h.next-first.first-uint64(first.lines) >= Lines {
			h.forget(first, "lines")
		} else if h.lines.Size() > lineBytes {
			h.forget(first, "bytes")
		} else {
			break
		}
	}
	if h.changed != nil {
		close(h.changed)
		h.changed = nil
	}
}

func (h *History) forget(first chunk, why string) {
	h.lines.Remove(0, 1)
	h.forgotten[why] += uint64(first.lines)
	if first.ended.After(h.since) {
		h.since = first.ended.UTC()
	}
	for _, c := range h.view().chunks { // earlier than first if the clock was set back
		if c.lines > 0 && c.began.Before(h.since) {
			h.since = c.began.UTC()
		}
	}
}

type view struct {
	node   string
	chunks []chunk
	next   uint64
	since  time.Time
}

func (h *History) view() view {
	return view{h.node, append(slices.Clone(h.lines.Held()), h.open), h.next, h.since}
}

func (h *History) look() (view, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.changed == nil {
		h.changed = make(chan struct{})
	}
	return h.view(), h.changed
}

// Operations returns the lines that match q. If there are none, it waits up to q.Wait or until ctx ends.
func (h *History) Operations(ctx context.Context, q control.Query) control.Found {
	late := time.NewTimer(min(q.Wait, control.MaxWait))
	defer late.Stop()
	v, changed := h.look()
	if q.After >= v.next { // of an earlier process, whose clock was ahead
		q.After = 0
	}
	from := q
	for q.Wait > 0 {
		if from.After = max(from.After, v.first()-1); v.any(from) {
			break
		}
		from.After = v.next - 1
		over := false
		select {
		case <-changed:
		case <-late.C:
			over = true
		case <-ctx.Done():
			over = true
		}
		if v, changed = h.look(); over {
			break
		}
	}
	return v.found(q)
}

func (v view) first() uint64 { return v.chunks[0].first }

// lines yields the lines that match q, without its limit. of also counts those that Problems excludes.
func (v view) lines(q control.Query, of *int) iter.Seq[control.Line] {
	return func(yield func(control.Line) bool) {
		for i, c := range v.chunks {
			if c.lines == 0 || c.first+uint64(c.lines) <= q.After+1 || c.ended.Before(q.Since) {
				continue
			}
			if i < len(v.chunks)-1 {
				c.data, _ = unpack(c.data)
			}
			for l := range c.decoded(q.After) {
				if l.Node = v.node; !wants(q, l) {
					continue
				}
				if l.Result != control.Late {
					*of++
				}
				if (!q.Problems || l.Result != control.Ordinary) && !yield(l) {
					return
				}
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

// found returns the answer to q. It decompresses lines as they are read, since all of them are about 6 MB.
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
	return append(meter.ByReason("history_forgotten_total",
		"Operations that left the node history, by the full limit. With bytes the history is shorter than 10,000 operations.",
		h.forgotten, []string{"lines", "bytes", "whole_operations", "whole_bytes", "large"}),
		meter.Level("history_operations", "Operations in the node history, one line each.", int(h.next-h.view().first())),
		meter.Level("history_whole_operations",
			"Slow and failed operations that the node history holds with all spans.", len(h.whole.Held())),
		meter.Level("history_bytes", "Memory of the node history.", h.lines.Size()+cap(h.open.data)+h.whole.Size()))
}
