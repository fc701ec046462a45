package probe

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/arguments"
	"github.com/cniscope/cniscope/test/harness"
)

// shared is the probe of tests without options of their own; TestMain closes it. The verifier takes most of a second to
// load one.
var shared *probing

// probing is a running probe. Its events go to one observed after another.
type probing struct {
	probe  *Probe
	to     atomic.Pointer[observed]
	passed atomic.Int64 // all events before this time were delivered; 0: calls in progress were not yet looked for
	cancel func()
	ended  chan error
	used   bool
}

func newProbing(t *testing.T, options Options) *probing {
	t.Helper()
	harness.Root(t)
	options.Ring, options.Processes, options.Arguments = cmp.Or(options.Ring, 1<<20), cmp.Or(options.Processes, 1024), cmp.Or(options.Arguments, arguments.Known)
	// Nothing may be missed.
	options.Detail, options.Linger = cmp.Or(options.Detail, DetailAlways), cmp.Or(options.Linger, 30*time.Second)
	options.Depth = cmp.Or(options.Depth, 1)
	options.Log = slog.New(slog.DiscardHandler)
	p, err := Open(options)
	if _, unsupported := errors.AsType[*UnsupportedError](err); unsupported {
		t.Skip(err)
	}
	harness.Check(t, err)
	for _, m := range p.kernel.Missing {
		t.Errorf("%s: %s", m.Feature, m.Reason)
	}
	s := &probing{probe: p, ended: make(chan error, 1)}
	s.next(0)
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	go func() { s.ended <- p.Run(ctx, s.sink) }()
	harness.Until(t, "it looks", func() bool { return options.Detail != DetailAlways || p.kernel.Gate.IsOpen() })
	harness.Until(t, "calls under way have been looked for", func() bool { return s.passed.Load() != 0 })
	return s
}

// ownProbing ends with the test.
func ownProbing(t *testing.T, options Options) *probing {
	t.Helper()
	s := newProbing(t, options)
	t.Cleanup(func() { harness.Check(t, s.close()) })
	return s
}

func (s *probing) close() error {
	s.cancel()
	return errors.Join(<-s.ended, s.probe.Close())
}

// next makes the observed of what happens after a time.
func (s *probing) next(since int64) {
	s.to.Store(&observed{since: since, ours: harness.NewOurs(container), probe: s.probe, stats: s.probe.Stats()})
}

func (s *probing) sink(e event.Event) {
	s.to.Load().sink(e)
	if _, is := e.Body.(*event.Tick); is {
		s.passed.Store(e.Time)
	}
}

// observe returns what happened in f, for the first time also what happened before.
func (s *probing) observe(t *testing.T, f func(*observed)) *observed {
	t.Helper()
	if s.used {
		s.next(clock.Monotonic())
	}
	s.used = true
	o := s.to.Load()
	before := o.stats
	f(o)
	end := clock.Monotonic()
	harness.Until(t, "all was delivered", func() bool {
		s.probe.kernel.Records.Wake()
		return s.passed.Load() > end
	})
	o.stats = s.probe.Stats()
	for reason, n := range before.Lost {
		o.stats.Lost[reason] -= n
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	lost := o.stats.Lost
	if lost["ring full"]+o.stats.Undecodable-before.Undecodable != 0 || o.said == 0 && lost["process table full"]+lost["over quota"] != 0 {
		t.Errorf("lost events: %+v", o.stats)
	}
	return o
}
