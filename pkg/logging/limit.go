// Package logging bounds the log: Limit the rate of each message, Writer the wait for a slow reader.
package logging

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// A starting node logs ten lines of one message, 30 failing pods 30. An endless cause has 86,400 of 500 bytes a day.
const (
	burst    = 20
	interval = time.Second
	// texts is the messages with their own limit; cniscope has about a hundred. Others share one.
	texts = 256
	// silence is the delay before a count of suppressed lines is logged alone.
	silence = 10 * time.Second
)

// Limit is a slog.Handler that limits each message's rate. The next line, or a separate one, has suppressed lines in
// left_out.
type Limit struct {
	next  slog.Handler
	state *state
}

type state struct {
	root slog.Handler // without With's attributes

	mu      sync.Mutex
	buckets map[string]*bucket
	leftOut uint64
	others  bucket
}

// bucket is a message's limit; at full, the whole burst is available.
type bucket struct {
	text    string
	level   slog.Level
	full    time.Time
	leftOut uint64
	due     *time.Timer // reports left_out; nil if 0
}

// NewLimit returns a Limit before next.
func NewLimit(next slog.Handler) *Limit {
	return &Limit{next, &state{root: next, buckets: map[string]*bucket{}, others: bucket{text: "others"}}}
}

// Enabled returns the next handler's answer.
func (l *Limit) Enabled(ctx context.Context, level slog.Level) bool {
	return l.next.Enabled(ctx, level)
}

// WithAttrs shares the limits.
func (l *Limit) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &Limit{l.next.WithAttrs(attrs), l.state}
}

// WithGroup shares the limits.
func (l *Limit) WithGroup(name string) slog.Handler {
	return &Limit{l.next.WithGroup(name), l.state}
}

// Handle writes or counts a line.
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

// LeftOut returns the number of suppressed lines.
func (l *Limit) LeftOut() uint64 {
	l.state.mu.Lock()
	defer l.state.mu.Unlock()
	return l.state.leftOut
}

// Flush reports suppressed lines at once, before exit.
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

// bucket removes full buckets if there are too many, else returns the shared one.
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

func (b *bucket) settle() (leftOut uint64) {
	if b.due != nil {
		b.due.Stop()
		b.due = nil
	}
	leftOut, b.leftOut = b.leftOut, 0
	return leftOut
}

func (s *state) say(b *bucket) {
	s.mu.Lock()
	level, n := b.level, b.settle()
	s.mu.Unlock()
	if n == 0 {
		return
	}
	r := slog.NewRecord(time.Now(), level, "log lines were left out", 0)
	r.AddAttrs(slog.String("text", b.text), slog.Uint64("left_out", n))
	_ = s.root.Handle(context.Background(), r) // a failed write cannot be logged
}
