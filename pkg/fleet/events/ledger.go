package events

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// PerMinute bounds all writes of a node.
	PerMinute = 10
	// perCause leaves room for other causes.
	perCause = 6
	minute   = time.Minute

	maxWaiting = 2 * PerMinute
	maxSeries  = 256
	// idle ends a series; client-go also uses six minutes.
	idle    = 6 * time.Minute
	stale   = 5 * time.Minute
	between = 30 * time.Second
	// Updates may use 1/share of PerMinute and perCause.
	share                    = 2
	firstPause, longestPause = time.Second, time.Minute
)

// Outcome is the result of a write.
type Outcome int

// Results of a write.
const (
	Written Outcome = iota
	// Gone means that the Event cannot be written, Again an unavailable API server.
	Gone
	Again
)

type key struct{ uid, reason, action, ifName, cause string }

type series struct {
	Notice
	key         key
	count       int
	written     int // operations in the Event; 0: no Event
	first, last time.Time
	offered     time.Time // start of the wait
	wrote       time.Time
	order       uint64
	name        string
	suffix      string
}

// Write is one write to the API.
type Write struct {
	Notice
	// Create means a new Event, else Count and Last update Name.
	Name   string
	Create bool
	Count  int
	Last   time.Time

	series *series
}

// Ledger schedules writes. It is bounded and reads no clock. Not for concurrent use.
type Ledger struct {
	all     map[key]*series
	writes  []written
	left    map[string]int // by cause, not in an Event yet
	leftOut int
	named   uint64
	until   time.Time // no write before
	pause   time.Duration
}

type written struct {
	at    time.Time
	cause string
}

// NewLedger returns an empty Ledger.
func NewLedger() *Ledger { return &Ledger{all: map[key]*series{}, left: map[string]int{}} }

// Offer queues a notice.
func (l *Ledger) Offer(n Notice, now time.Time) {
	l.tidy(now)
	k := key{n.UID, n.Reason, n.Action, n.IfName, n.Cause}
	if s := l.all[k]; s != nil {
		s.count++
		s.last = n.Time
		return
	}
	s := &series{Notice: n, key: k, count: 1, first: n.Time, last: n.Time, offered: now}
	l.named++
	s.order, s.name = l.named, name(n.Pod, now, l.named)
	l.all[k] = s
	if waiting := l.waiting(); len(waiting) > maxWaiting {
		l.leave(least(waiting))
	}
}

func name(pod string, now time.Time, n uint64) string {
	const room = 200 // of 253 characters
	return fmt.Sprintf("%s.%x.%x", strings.TrimRight(pod[:min(len(pod), room)], "-."), now.UnixNano(), n)
}

// Forgot counts operations whose details are lost.
func (l *Ledger) Forgot(n int) {
	if n > 0 {
		l.left[""] += n
		l.leftOut += n
	}
}

// Next returns a due write, or the time until one.
func (l *Ledger) Next(now time.Time) (w *Write, wait time.Duration) {
	l.tidy(now)
	if now.Before(l.until) {
		return nil, l.until.Sub(now)
	}
	wait = minute
	for _, s := range append(l.waiting(), l.grown()...) {
		at := l.allowed(s, now)
		if at.After(now) {
			wait = min(wait, at.Sub(now))
			continue
		}
		return l.write(s, now), 0
	}
	return nil, wait
}

func (l *Ledger) write(s *series, now time.Time) *Write {
	l.writes = append(l.writes, written{now, s.Cause})
	s.wrote = now
	w := &Write{Notice: s.Notice, Name: s.name, Create: s.written == 0, Count: s.count, Last: s.last, series: s}
	if w.Create {
		if n := l.left[s.Cause]; n > 0 && s.suffix == "" {
			s.suffix = fmt.Sprintf(" (%d more pod setups and teardowns on this node with this cause got no Event: the limit "+
				"is %d a minute)", n, PerMinute)
			delete(l.left, s.Cause)
		}
		w.Note = cut(s.Note, maxNote-len(s.suffix)) + s.suffix
	}
	return w
}

// Done reports the result of a write.
func (l *Ledger) Done(w *Write, how Outcome, now time.Time) {
	switch how {
	case Written:
		w.series.written, l.pause = w.Count, 0
	case Gone:
		delete(l.all, w.series.key)
		l.pause = 0
	case Again:
		l.pause = min(max(firstPause, 2*l.pause), longestPause)
		l.until = now.Add(l.pause)
	}
}

// LeftOut counts operations without an Event.
func (l *Ledger) LeftOut() int { return l.leftOut }

func (l *Ledger) waiting() (all []*series) {
	for _, s := range l.all {
		if s.written == 0 {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b *series) int {
		return cmp.Or(cmp.Compare(b.Type, a.Type), cmp.Compare(a.order, b.order))
	})
	return all
}

func least(waiting []*series) *series {
	kind, of := waiting[len(waiting)-1].Type, map[string]int{}
	for _, s := range waiting {
		of[s.Cause]++
	}
	var found *series
	for _, s := range waiting {
		if s.Type == kind && (found == nil || of[s.Cause] >= of[found.Cause]) {
			found = s
		}
	}
	return found
}

func (l *Ledger) grown() (all []*series) {
	for _, s := range l.all {
		if s.written > 0 && s.count > s.written {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b *series) int { return cmp.Or(a.wrote.Compare(b.wrote), cmp.Compare(a.order, b.order)) })
	return all
}

func (l *Ledger) allowed(s *series, now time.Time) time.Time {
	at, most, mostOfCause := now, PerMinute, perCause
	if s.written > 0 {
		at, most, mostOfCause = s.wrote.Add(between), PerMinute/share, perCause/share
	}
	if n := len(l.writes); n >= most {
		at = later(at, l.writes[n-most].at.Add(minute))
	}
	same := 0
	for i := len(l.writes) - 1; i >= 0; i-- {
		if l.writes[i].cause == s.Cause {
			if same++; same == mostOfCause {
				at = later(at, l.writes[i].at.Add(minute))
				break
			}
		}
	}
	return at
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (l *Ledger) tidy(now time.Time) {
	l.writes = slices.DeleteFunc(l.writes, func(w written) bool { return now.Sub(w.at) >= minute })
	written := 0
	for k, s := range l.all {
		switch {
		case s.written == 0 && now.Sub(s.offered) >= stale:
			l.leave(s)
		case s.written > 0 && s.count == s.written && now.Sub(s.wrote) >= idle:
			delete(l.all, k)
		case s.written > 0:
			written++
		}
	}
	for ; written > maxSeries; written-- {
		l.forgetOldest()
	}
}

func (l *Ledger) forgetOldest() {
	var oldest *series
	for _, s := range l.all {
		if s.written > 0 && (oldest == nil || s.wrote.Before(oldest.wrote)) {
			oldest = s
		}
	}
	if oldest != nil {
		delete(l.all, oldest.key)
	}
}

func (l *Ledger) leave(s *series) {
	delete(l.all, s.key)
	l.left[s.Cause] += s.count
	l.leftOut += s.count
}
