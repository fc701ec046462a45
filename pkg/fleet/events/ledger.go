package events

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// PerMinute is how many writes a node makes in any minute, failed ones and updates of series counted.
	PerMinute = 10
	// PerCause is how many of them may be for one cause: that leaves room for others.
	PerCause = 6
	minute   = time.Minute

	// maxWaiting is how many notices wait to be written; more are left out. It is what two minutes can write.
	maxWaiting = 2 * PerMinute
	// maxSeries bounds what is remembered of Events written, in series: a few hundred KB.
	maxSeries = 256
	// idle is after how long without another operation a series is over: the next one is an Event of its own.
	// client-go takes six minutes, too.
	idle = 6 * time.Minute
	// stale is how long a notice may wait; it is left out then.
	stale = 5 * time.Minute
	// between is the least time between two writes of one series.
	between = 30 * time.Second
	// share divides PerMinute and PerCause: updates of series may take that part, and leave the rest to new Events.
	share = 2
	// The pause after a failed write doubles from one to the other.
	firstPause, longestPause = time.Second, time.Minute
)

// Outcome is how a write went.
type Outcome int

// The outcomes.
const (
	Written Outcome = iota
	// Gone: the Event, or where it belongs, is not there any more, or is never going to be taken.
	Gone
	// Again: the API server cannot take it now.
	Again
)

// key tells series apart.
type key struct{ uid, reason, action, ifName, cause string }

// series are equal notices of one pod: one Event.
type series struct {
	Notice
	key         key
	count       int       // operations
	written     int       // of them, those that the Event counts; 0: there is no Event yet
	first, last time.Time // of the operations
	offered     time.Time // when it began to wait
	wrote       time.Time // when it was written last
	order       uint64    // rises from one to the next
	name        string    // of the Event
	suffix      string
}

// Write is one write to the API.
type Write struct {
	Notice
	// Name is the Event's, unique. Create reports whether it is new; otherwise its series is set to Count and Last.
	Name   string
	Create bool
	Count  int
	Last   time.Time

	series *series
}

// Ledger remembers what was written, what waits to be, and what was left out. It is bounded, and reads no clock.
// Not safe for concurrent use.
type Ledger struct {
	all     map[key]*series
	writes  []written
	left    map[string]int // by cause, not said yet in an Event
	leftOut int            // in all
	named   uint64         // Events that were given a name
	until   time.Time      // no write before
	pause   time.Duration
}

type written struct {
	at    time.Time
	cause string
}

// NewLedger returns an empty one.
func NewLedger() *Ledger { return &Ledger{all: map[key]*series{}, left: map[string]int{}} }

// Offer takes a notice, to be written as soon as that is allowed.
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

// name is that of an Event: it ends in the time, as client-go's do. Of long names of pods the beginning has to do.
func name(pod string, now time.Time, n uint64) string {
	const room = 200 // of the 253 letters of a name
	return fmt.Sprintf("%s.%x.%x", strings.TrimRight(pod[:min(len(pod), room)], "-."), now.UnixNano(), n)
}

// Forgot counts operations of which nothing but their number is known.
func (l *Ledger) Forgot(n int) {
	if n > 0 {
		l.left[""] += n
		l.leftOut += n
	}
}

// Next returns a write that may be made now, or after how long to ask again.
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
			s.suffix = fmt.Sprintf(" (%d more operations on this node for the same cause got no Event: %d are written a minute at most)", n, PerMinute)
			delete(l.left, s.Cause)
		}
		w.Note = cut(s.Note, maxNote-len(s.suffix)) + s.suffix
	}
	return w
}

// Done tells how a write went.
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

// LeftOut returns how many operations got no Event, in all.
func (l *Ledger) LeftOut() int { return l.leftOut }

// waiting are the notices without an Event: what failed or hangs first, then the earliest.
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

// least returns which of the waiting ones is missed least: of those of the lesser type the latest of the cause that
// has most.
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

// grown are the series whose Event counts less than there are, the one that was written longest ago first.
func (l *Ledger) grown() (all []*series) {
	for _, s := range l.all {
		if s.written > 0 && s.count > s.written {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b *series) int { return cmp.Or(a.wrote.Compare(b.wrote), cmp.Compare(a.order, b.order)) })
	return all
}

// allowed is when a series may be written.
func (l *Ledger) allowed(s *series, now time.Time) time.Time {
	at, most, mostOfCause := now, PerMinute, PerCause
	if s.written > 0 {
		at, most, mostOfCause = s.wrote.Add(between), PerMinute/share, PerCause/share
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

// tidy forgets what is over.
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

// leave leaves a notice out, and counts what it stood for.
func (l *Ledger) leave(s *series) {
	delete(l.all, s.key)
	l.left[s.Cause] += s.count
	l.leftOut += s.count
}
