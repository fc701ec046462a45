//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe"
	"github.com/cniscope/cniscope/pkg/probe/arguments"
	"github.com/cniscope/cniscope/pkg/probe/connector"
	"github.com/cniscope/cniscope/pkg/probe/proctracker"
)

type scene struct {
	options string // of the kernel
	calls   map[string]*called
	hungPID int

	refused         error // reason for a missing kernel probe
	unsupported     error // reason for missing observation
	connector       bool  // observed by the process connector
	stats           probe.Stats
	strangersMissed uint64
	mu              sync.Mutex
	events          []event.Event
}

type result struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitempty"`
}

func report(to io.Writer, options string, _ int) error {
	s := &scene{options: options}
	if err := s.play(); err != nil {
		return err
	}
	for _, f := range features {
		r := result{Name: f.name, OK: true}
		if err := f.check(s); err != nil {
			r.OK, r.Detail = false, err.Error()
		}
		if err := line(to, "feature", r); err != nil {
			return err
		}
	}
	fmt.Fprintf(to, "\nway %s\n", s.stats.Way)
	for name, program := range s.stats.Programs {
		if program.Missed > 0 {
			fmt.Fprintf(to, "\nmissed %s %d times\n", name, program.Missed)
		}
	}
	if n := s.missed(); n > 0 {
		fmt.Fprintf(to, "\nmissed %s %d times\n", "programs", n)
	}
	return nil
}

// play calls the plugins, one before the probe starts. They must not notice a probe.
func (s *scene) play() error {
	w, err := makeWorld()
	if err != nil {
		return err
	}
	go w.unlock()
	early, stdin, err := hang()
	if err != nil {
		return err
	}
	s.hungPID = early.Process.Pid
	leave := func() error {
		s.calls["hung"] = &called{}
		_ = stdin.Close()
		_ = early.Wait()
		return s.calls["hung"].ended(early, nil)
	}

	p, err := s.open()
	if err != nil {
		s.unsupported = err
		if s.calls, err = callAll(); err != nil {
			return err
		}
		return leave()
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- p.Run(ctx, s.sink) }()
	// The probe finds running plugins asynchronously.
	for i := 0; i < 1500 && s.exec(func(x *event.Exec) bool { return x.InFlight }) == nil; i++ {
		time.Sleep(20 * time.Millisecond)
	}
	if s.calls, err = callAll(); err == nil {
		err = leave()
	}
	// A server is followed for a while after its last call.
	for i := 0; i < 500 && p.stats().Tracked > 0; i++ {
		time.Sleep(20 * time.Millisecond)
	}
	cancel() // Run delivers pending events before it returns
	err = errors.Join(err, <-done)
	s.stats = p.stats()
	return errors.Join(err, p.Close())
}

type observer struct {
	runner
	stats func() probe.Stats
}

type runner interface {
	Run(context.Context, event.Sink) error
	Close() error
}

func (s *scene) open() (observer, error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	s.refused = errors.New("the process connector was asked for")
	if !byConnector(s.options) {
		p, err := probe.Open(probe.Options{
			Ring: 1 << 20, Processes: 1024, Arguments: arguments.Known, Depth: 1, Detail: probe.DetailAlways, Way: wayOf(s.options), Log: log,
		})
		if err == nil {
			s.refused = nil
			return observer{p, p.Stats}, nil
		}
		s.refused = err
	}
	// Calls in this process block Go's CPU slots, which the reader needs.
	runtime.GOMAXPROCS(12)
	c, err := connector.Open(connector.Options{Processes: 1024, Arguments: arguments.Known, Log: log})
	if err != nil {
		return observer{}, errors.Join(s.refused, err)
	}
	s.connector = true
	return observer{c, func() probe.Stats {
		now := c.Stats()
		s.strangersMissed = now.Missed.Strangers
		return probe.Stats{Tracked: now.Followed, Lost: now.Lost}
	}}, nil
}

// missed counts programs that exited before the process connector read them on this slow machine.
func (s *scene) missed() uint64 {
	if !s.connector {
		return 0
	}
	return s.strangersMissed + s.stats.Lost[proctracker.LostSight]
}

func wayOf(options string) string {
	for _, o := range strings.Fields(options) {
		if way, is := strings.CutPrefix(o, "cniscope.way="); is {
			return way
		}
	}
	return ""
}

func byConnector(options string) bool { return strings.Contains(options, "cniscope.source=connector") }

func (s *scene) sink(e event.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
}

func first[B event.Body](s *scene, is func(B) bool) (none B) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.events {
		if b, ok := e.Body.(B); ok && is(b) {
			return b
		}
	}
	return none
}

func (s *scene) exec(is func(*event.Exec) bool) *event.Exec { return first(s, is) }

func (s *scene) run(plugin string) (*event.Exec, error) {
	if s.unsupported != nil {
		return nil, errors.New("the kernel probe is off")
	}
	x := s.exec(func(x *event.Exec) bool { return x.Root && x.Call != nil && x.Call.ContainerID == plugin })
	if x == nil {
		return nil, fmt.Errorf("%s was not seen", plugin)
	}
	return x, nil
}

func (s *scene) degraded(feature string) bool {
	return first(s, func(d *event.Degraded) bool { return d.Feature == feature }) != nil
}

func (s *scene) exit(p event.Process) *event.Exit {
	return cmp.Or(first(s, func(x *event.Exit) bool { return x.Process == p }), &event.Exit{Unseen: true})
}

func (s *scene) fork(p event.Process) *event.Fork {
	return cmp.Or(first(s, func(f *event.Fork) bool { return f.Process == p }), &event.Fork{})
}
