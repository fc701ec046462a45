package queue

import (
	"context"
	"time"

	"github.com/cniscope/cniscope/pkg/spool"
	"github.com/cniscope/cniscope/pkg/text"
)

// syncEvery is how often the spool is synced, while something is written to it: what a
// loss of power can take. It is also how often old ones are looked for.
const syncEvery = 5 * time.Second

// storer writes to the spool what comes into a queue.
type storer struct {
	*Queue
	synced time.Time
	// failing is true from when the log was told that the spool fails until it was told
	// that it works; unspooled is how many items were not written when that began.
	failing   bool
	unspooled uint64
	failures  seldom
}

func (s *storer) run(ctx context.Context) {
	defer s.end()
	tick := time.Tick(syncEvery)
	for ctx.Err() == nil {
		item, some, closed := s.first()
		switch {
		case some:
			s.keep(item)
		case closed:
			return
		default:
			select {
			case <-s.store:
			case <-tick:
			case <-ctx.Done():
			}
		}
		s.tend(time.Now())
	}
}

func (s *storer) end() {
	s.mu.Lock()
	s.storing = false
	s.mu.Unlock()
	close(s.stored)
	signal(s.wake)
}

// first returns the item that came first. It stays where it is until it is kept.
func (s *storer) first() (item Item, some, closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.incoming) > 0 {
		return s.incoming[0], true, s.closed
	}
	return item, false, s.closed
}

// keep writes an item down, and leaves it in memory where that fails.
func (s *storer) keep(item Item) {
	dropped, err := s.Spool.Append(spool.Operation(item))
	s.mu.Lock()
	if len(s.incoming) > 0 { // Close may have given up on it
		s.incoming[0] = Item{} // the array behind it lives on
		s.incoming = s.incoming[1:]
		if err == nil {
			s.bytes -= len(item.Data) + s.Overhead
			s.stats.Spooled++
		} else {
			s.items = append(s.items, item.Data)
			s.stats.Unspooled++
		}
	}
	s.forgot(dropped)
	s.mu.Unlock()
	signal(s.wake)
	s.say(err)
}

// tend syncs the spool and forgets what is old, if it is time to.
func (s *storer) tend(now time.Time) {
	if now.Sub(s.synced) < syncEvery {
		return
	}
	s.synced = now
	dropped := s.Spool.Trim()
	s.mu.Lock()
	s.forgot(dropped)
	s.mu.Unlock()
	if err := s.Spool.Sync(); err != nil {
		s.say(err)
	}
}

// forgot counts what the spool had no room for, if it was to be sent anywhere.
func (q *Queue) forgot(d spool.Dropped) {
	if q.sender == nil {
		return
	}
	q.stats.drop(SpoolFull, d.Full)
	q.stats.drop(SpoolOld, d.Old)
}

// say says that the spool fails, and that it works again: a disk may be full for days.
func (s *storer) say(err error) {
	if err == nil && !s.failing {
		return
	}
	s.mu.Lock()
	unspooled := s.stats.Unspooled
	if err != nil {
		s.stats.SpoolError = text.Clean(err.Error(), 2*text.Bound)
	}
	last := s.stats.SpoolError
	s.mu.Unlock()
	switch {
	case err == nil:
		s.failing = false
		s.Log.Info("the spool can be written again", "unspooled", unspooled-s.unspooled)
	case !s.failing && s.failures.now(time.Now()):
		s.failing, s.unspooled = true, max(unspooled, 1)-1
		s.Log.Warn("the spool cannot be written, operations wait in memory only", "error", last)
	}
}

// fromSpool returns what is to be sent next from the spool.
func (w *worker) fromSpool() batch {
	records, err := w.Spool.Peek(w.limit, MaxRequest)
	if err != nil {
		w.mu.Lock()
		w.stats.SpoolError = text.Clean(err.Error(), 2*text.Bound)
		w.mu.Unlock()
		if w.disk.now(time.Now()) {
			w.log.Warn("the spool cannot be read, it will be tried again", "error", err)
		}
	}
	b := batch{spooled: records}
	for _, r := range records {
		b.items = append(b.items, r.Data)
	}
	return b
}

// giveBack leaves in the spool what is not settled, and counts what the spool had no room for since it was read.
func (w *worker) giveBack() {
	if w.Spool == nil {
		return
	}
	lost := w.Spool.Return()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forgot(lost)
}

// advance passes over the items of a batch, if it came from the spool and nothing
// more is to be done for it. It returns how many damaged stretches were passed over.
// Without the queue's lock: it may wait for the disk.
func (w *worker) advance(b batch, what outcome) (damaged uint64) {
	if len(b.spooled) == 0 {
		return 0
	}
	if what == failed || b.len() > 1 && (what == rejected || what == panicked) {
		w.giveBack()
		return 0
	}
	if err := w.Spool.Advance(b.spooled[b.len()-1].Next); err != nil && w.disk.now(time.Now()) {
		w.log.Warn("what was exported cannot be noted: after a restart it would be sent again", "error", err)
	}
	for _, r := range b.spooled {
		damaged += r.Damaged
	}
	return damaged
}
