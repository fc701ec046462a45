//go:build linux

package main

import (
	"context"
	"encoding/json"
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

func report(to io.Writer, options string) error {
	if err := install(); err != nil {
		return err
	}
	s := &scene{options: options}
	if err := s.play(); err != nil {
		return err
	}
	if err := release(to); err != nil {
		return err
	}
	for _, f := range features {
		r := result{Name: f.name, OK: true}
		if err := f.check(s); err != nil {
			r.OK, r.Detail = false, err.Error()
		}
		line, err := json.Marshal(r)
		if err != nil {
			return err
		}
		fmt.Fprintf(to, "\nfeature %s\n", line)
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
	fmt.Fprintln(to, "\nend")
	return nil
}

// play calls the plugins, one before the probe starts. They must not notice a probe.
func (s *scene) play() error {
	w, err := makeWorld()
	if err != nil {
		return err
	}
	go w.unlock()
	early := command("hung")
	stdin, err := early.StdinPipe()
	if err != nil {
		return err
	}
	if err := early.Start(); err != nil {
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

func (s *scene) exec(is func(*event.Exec) bool) *event.Exec {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.events {
		if x, ok := e.Body.(*event.Exec); ok && is(x) {
			return x
		}
	}
	return nil
}

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
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.events {
		if d, ok := e.Body.(*event.Degraded); ok && d.Feature == feature {
			return true
		}
	}
	return false
}

func (s *scene) exit(p event.Process) *event.Exit {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.events {
		if x, ok := e.Body.(*event.Exit); ok && x.Process == p {
			return x
		}
	}
	return &event.Exit{Unseen: true}
}

func (s *scene) fork(p event.Process) *event.Fork {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.events {
		if x, ok := e.Body.(*event.Fork); ok && x.Process == p {
			return x
		}
	}
	return &event.Fork{}
}
