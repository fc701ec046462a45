package queue

import (
	"context"
	"time"

	"github.com/cniscope/cniscope/pkg/spool"
	"github.com/cniscope/cniscope/pkg/text"
)

// syncEvery is the interval of spool syncs, which bounds the loss at a power failure.
const syncEvery = 5 * time.Second

type storer struct {
	*Queue
	synced time.Time
	// before is what Stats.Unspooled was when the spool began to fail.
	failing  bool
	before   uint64
	failures seldom
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

func (s *storer) first() (item Item, some, closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if all := s.waiting.Held(); len(all) > s.unspooled {
		return all[s.unspooled], true, s.closed
	}
	return item, false, s.closed
}

func (s *storer) keep(item Item) {
	dropped, err := s.Spool.Append(item)
	s.mu.Lock()
	switch {
	case err == nil:
		s.stats.Spooled += uint64(s.waiting.Remove(s.unspooled, 1)) // 0 if Close dropped the item
	case len(s.waiting.Held()) > s.unspooled:
		s.unspooled++
		s.stats.Unspooled++
	}
	s.forgot(dropped)
	s.mu.Unlock()
	signal(s.wake)
	s.say(err)
}

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

func (q *Queue) forgot(d spool.Dropped) {
	if q.sender == nil {
		return
	}
	q.stats.drop(SpoolFull, d.Full)
	q.stats.drop(SpoolOld, d.Old)
}

// say logs up to once a minute: a disk can stay full for days.
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
		s.Log.Info("spool write recovered", "unspooled", unspooled-s.before)
	case !s.failing && s.failures.now(time.Now()):
		s.failing, s.before = true, max(unspooled, 1)-1
		s.Log.Warn("spool write failed, queueing in memory", "error", last)
	}
}

func (w *worker) fromSpool() batch {
	records, err := w.Spool.Peek(w.limit, maxRequest)
	if err != nil {
		w.mu.Lock()
		w.stats.SpoolError = text.Clean(err.Error(), 2*text.Bound)
		w.mu.Unlock()
		if w.disk.now(time.Now()) {
			w.log.Warn("spool read failed, retrying", "error", err)
		}
	}
	b := batch{spooled: records}
	for _, r := range records {
		b.items = append(b.items, r.Data)
	}
	return b
}

func (w *worker) giveBack() {
	if w.Spool == nil {
		return
	}
	lost := w.Spool.Return()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forgot(lost)
}

// advance moves the spool's cursor behind a settled batch and returns its damaged ranges. It may wait for the disk;
// do not call it under the lock.
func (w *worker) advance(b batch, what outcome) (damaged uint64) {
	if len(b.spooled) == 0 {
		return 0
	}
	if what == failed || b.len() > 1 && (what == rejected || what == panicked) {
		w.giveBack()
		return 0
	}
	if err := w.Spool.Advance(b.spooled[b.len()-1].Next); err != nil && w.disk.now(time.Now()) {
		w.log.Warn("spool position not saved, a restart may export twice", "error", err)
	}
	for _, r := range b.spooled {
		damaged += r.Damaged
	}
	return damaged
}
