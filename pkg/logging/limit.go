// Package logging keeps the log usable: a Limit lets nobody flood it, and a Writer keeps
// who logs from waiting for whoever reads it.
package logging

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Of one text so many lines are written at once, and then one in each interval. A node that
// starts has some ten of one text, a storm of 30 pods that all fail has 30; what somebody
// outside can cause without end comes to 86,400 lines a day of some 500 bytes.
const (
	burst    = 20
	interval = time.Second
	// texts is how many are told apart. Ours are constants, some hundred; the others, a
	// library's, have one place in common when there are more.
	texts = 256
	// silence is how long a count of what was left out may wait for the next line to come.
	silence = 10 * time.Second
)

// Limit is a slog.Handler that bounds how often each text is written, whatever its
// attributes and level. The next line of that text says in left_out how many there would
// have been; if there is none for a while, a line of its own does.
//
// It is told apart by text, since that is what a reader filters by, and constant. Libraries
// that sample do so too (samber/slog-sampling), but keep to themselves what they left out.
type Limit struct {
	next  slog.Handler
	state *state
}

// state is what all handlers made of one by With have in common.
type state struct {
	root slog.Handler // without With's attributes

	mu      sync.Mutex
	buckets map[string]*bucket
	leftOut uint64 // in all
	others  bucket // of all texts that found no place
}

// bucket is what one text may have. It needs no clock of its own: full is when it will be
// as it was in the beginning.
type bucket struct {
	text    string
	level   slog.Level // of the last line that was left out
	full    time.Time
	leftOut uint64
	due     *time.Timer // to say so; nil if there is nothing to be said
}

// NewLimit returns a handler in front of next.
func NewLimit(next slog.Handler) *Limit {
	return &Limit{next, &state{root: next, buckets: map[string]*bucket{}, others: bucket{text: "others"}}}
}

// Enabled is the next handler's.
func (l *Limit) Enabled(ctx context.Context, level slog.Level) bool {
	return l.next.Enabled(ctx, level)
}

// WithAttrs returns a handler that has the bounds in common with this one.
func (l *Limit) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &Limit{l.next.WithAttrs(attrs), l.state}
}

// WithGroup is as WithAttrs.
func (l *Limit) WithGroup(name string) slog.Handler {
	return &Limit{l.next.WithGroup(name), l.state}
}

// Handle writes a line, or counts it.
func (l *Limit) Handle(ctx context.Context, r slog.Record) error {
	leftOut, ok := l.state.admit(r.Message, r.Level, time.Now())
	if !ok {
		return nil
	}
	if leftOut > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Uint64("left_out", leftOut))
	}
	return l.next.Handle(ctx, r)
}

// LeftOut is how many lines were left out so far.
func (l *Limit) LeftOut() uint64 {
	l.state.mu.Lock()
	defer l.state.mu.Unlock()
	return l.state.leftOut
}

// Flush says at once what was left out and not said yet. Call it at the end.
func (l *Limit) Flush() {
	s := l.state
	s.mu.Lock()
	all := []*bucket{&s.others}
	for _, b := range s.buckets {
		all = append(all, b)
	}
	s.mu.Unlock()
	for _, b := range all {
		s.say(b)
	}
}

// admit reports whether a line of a text may be written now, and how many were not since
// the last one that was.
func (s *state) admit(text string, level slog.Level, now time.Time) (leftOut uint64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.bucket(text, now)
	if now.After(b.full) {
		b.full = now
	}
	if b.full.Sub(now) > (burst-1)*interval {
		s.leftOut++
		b.leftOut++
		b.level = level
		if b.due == nil {
			b.due = time.AfterFunc(silence, func() { s.say(b) })
		}
		return 0, false
	}
	b.full = b.full.Add(interval)
	return b.settle(), true
}

// bucket returns that of a text. Where all places are taken it forgets those that are as
// new, and failing that the text shares one.
func (s *state) bucket(text string, now time.Time) *bucket {
	if b := s.buckets[text]; b != nil {
		return b
	}
	if len(s.buckets) >= texts {
		for key, b := range s.buckets {
			if b.leftOut == 0 && now.After(b.full) {
				delete(s.buckets, key)
			}
		}
	}
	if len(s.buckets) >= texts {
		return &s.others
	}
	b := &bucket{text: text}
	s.buckets[text] = b
	return b
}

// settle takes the count of what was left out.
func (b *bucket) settle() (leftOut uint64) {
	if b.due != nil {
		b.due.Stop()
		b.due = nil
	}
	leftOut, b.leftOut = b.leftOut, 0
	return leftOut
}

// say writes a line about the lines that were left out, if any were.
func (s *state) say(b *bucket) {
	s.mu.Lock()
	level, n := b.level, b.settle()
	s.mu.Unlock()
	if n == 0 {
		return
	}
	r := slog.NewRecord(time.Now(), level, "log lines were left out", 0)
	r.AddAttrs(slog.String("text", b.text), slog.Uint64("left_out", n))
	_ = s.root.Handle(context.Background(), r) // who logs is not told either
}
