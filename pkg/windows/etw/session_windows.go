package etw

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/cniscope/cniscope/pkg/clock"
)

const (
	flushEvery = 20 * time.Millisecond
	// A change may be 35 ms late.
	window       = flushEvery + 35*time.Millisecond
	advanceEvery = 10 * time.Millisecond
	askEvery     = time.Second
	// waitingMax bounds decoded records; beyond it Windows buffers.
	waitingMax = 4096
)

// Session is two real-time sessions, which collect until Close.
type Session struct {
	options   Options
	loggers   []*logger
	partial   error
	processes chan Process
	closed    chan struct{}
	stop      sync.Once

	mu      sync.Mutex
	decoder Decoder
	stats   Stats
}

// Open starts the sessions, stopping those of a crashed predecessor. It needs administrator or SYSTEM; a refusal is a
// RefusedError.
func Open(o Options) (*Session, error) {
	s := &Session{options: o, processes: make(chan Process, waitingMax), closed: make(chan struct{})}
	err := s.begin(o.Name+"-process", 0, func(l *logger) error {
		return l.enable(KernelProcess, levelInformation, keywordProcess)
	})
	err2 := s.begin(o.Name+"-commands", enableProcess, func(*logger) error { return nil })
	s.partial = errors.Join(err, err2)
	if err != nil && err2 != nil {
		return nil, err // usually the same
	}
	return s, nil
}

func (s *Session) begin(name string, system uint32, enable func(*logger) error) error {
	l, err := start(name, realTime(system), true)
	if err != nil {
		return err
	}
	if err = enable(l); err == nil {
		err = l.open(s.take)
	}
	if err != nil {
		return errors.Join(err, l.stop())
	}
	s.loggers = append(s.loggers, l)
	return nil
}

func (s *Session) take(r *Record) {
	s.mu.Lock()
	p, ok := s.decoder.Decode(r)
	s.mu.Unlock()
	if !ok {
		return
	}
	select {
	case s.processes <- p:
	case <-s.closed:
	}
}

// Run delivers changes until ctx ends. If another program stops a session, Run fails, and
// the caller opens a new Session.
func (s *Session) Run(ctx context.Context, t Taker) error {
	ended := make(chan error, len(s.loggers))
	for _, l := range s.loggers {
		go func() {
			err := l.process()
			ended <- fmt.Errorf("session %s was stopped, so cniscope no longer sees processes: %w", l.name,
				errors.Join(err, errStopped))
		}()
	}
	q := NewSequencer(t, window)
	tick := time.NewTicker(advanceEvery)
	defer tick.Stop()
	for asked := time.Now(); ; {
		select {
		case <-ctx.Done():
			s.drain(q)
			q.Advance(clock.Monotonic() + int64(window))
			s.count(q)
			return nil
		case err := <-ended:
			return err
		case p := <-s.processes:
			q.Take(p)
		case now := <-tick.C:
			read := clock.Monotonic()
			s.drain(q)
			q.Advance(read)
			if now.Sub(asked) >= askEvery {
				asked = now
				s.ask(q)
			}
			s.count(q)
		}
	}
}

var errStopped = errors.New("stopped")

func (s *Session) drain(q *Sequencer) {
	for range len(s.processes) {
		q.Take(<-s.processes)
	}
}

func (s *Session) ask(q *Sequencer) {
	for _, l := range s.loggers {
		events, buffers, err := l.losses()
		if err != nil { // ProcessTrace ends without the session
			s.options.Log.Warn("lost events of a session unknown", "session", l.name, "error", err)
			continue
		}
		q.Lost(events, buffers)
	}
}

func (s *Session) count(q *Sequencer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats = q.Stats()
}

// Partial returns the RefusedError of one session. Without the system logger changes lack command lines; without
// Kernel-Process, Created and Cycles.
func (s *Session) Partial() error { return s.partial }

// Stats is safe for concurrent use.
func (s *Session) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	counted := s.stats
	counted.Unknown, counted.Malformed = maps.Clone(s.decoder.Unknown), maps.Clone(s.decoder.Malformed)
	return counted
}

// Close stops the sessions, which would outlive the process.
func (s *Session) Close() error {
	var errs []error
	s.stop.Do(func() {
		close(s.closed)
		for _, l := range s.loggers {
			errs = append(errs, l.stop(), l.close())
		}
	})
	return errors.Join(errs...)
}
