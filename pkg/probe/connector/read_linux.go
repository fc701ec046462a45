package connector

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/proctracker"
	"github.com/cniscope/cniscope/pkg/procfs"
)

const (
	// window is the largest disorder of different CPUs' messages.
	window = 20 * time.Millisecond
	// tickEvery is the longest wait while processes are followed, idle at other times.
	tickEvery = 20 * time.Millisecond
	idle      = 200 * time.Millisecond
	// stormAbove is in execs per second. No storm begins within hotFor of a start by the runtime, possibly of a plugin.
	stormAbove = 150
	stormEvery = 50 * time.Millisecond
	hotFor     = 50 * time.Millisecond
	// breath lets other processes run, since the reader has priority.
	breath = 5 * time.Millisecond
	// quietAfter is the time for the consumer to process the last events.
	quietAfter = time.Second
	outlive    = 30 * time.Second
	// known bounds the remembered parents, 150 bytes each.
	known = 1 << 16
)

type reader struct {
	*Connector
	tracker           *proctracker.Tracker
	programs, weighed uint64
	weighedAt         int64
	// In a storm only starts by the runtime wake the reader; hot is the time of the last start.
	storm bool
	hot   int64
	gaps  *gaps
	waits waits
	sink  event.Sink

	tied clock.Tie

	ticked, busy, counted int64 // monotonic ns
	heard, asked          int64 // times of the last message and heartbeat
	silent                bool
}

func newReader(c *Connector, sink event.Sink) *reader {
	r := &reader{Connector: c, gaps: newGaps(), waits: newWaits(), sink: sink, heard: clock.Monotonic()}
	r.tracker = proctracker.New(proctracker.Options{
		Source: "probe", Processes: c.options.Processes, Known: known, Window: window, Outlive: outlive,
		Arguments: c.options.Arguments, Looker: c.looker, Sink: r.deliver,
	})
	return r
}

// deliver ties the clocks before a run.
func (r *reader) deliver(e event.Event) {
	if exec, is := e.Body.(*event.Exec); is && exec.Root {
		r.tie()
	}
	r.sink(e)
}

func (r *reader) tie() {
	if mono, wall, tell := r.tied.Again(); tell {
		r.sink(event.Event{Time: mono, Body: &event.Clock{Wall: wall}})
	}
}

func (r *reader) begin() {
	r.tie()
	type running struct{ pid, parent, start int64 }
	var all []running
	pids, _ := procfs.All()
	for _, pid := range pids {
		if s, err := procfs.StatOf(pid); err == nil && !s.Zombie() {
			all = append(all, running{int64(pid), int64(s.Parent), r.looker.suspends.Monotonic(s.Start)})
		}
	}
	slices.SortFunc(all, func(a, b running) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.pid, b.pid)) })
	rested := clock.Monotonic()
	for _, p := range all {
		now := clock.Monotonic()
		if now-rested > int64(tickEvery) {
			rest()
			now = clock.Monotonic()
			rested = now
		}
		r.tracker.Present(uint32(p.pid), uint32(p.parent), p.start, now)
	}
	r.tracker.Advance(clock.Monotonic(), 0)
	r.count()
	r.options.Log.Info("observing plugins and commands by the process connector, not system calls",
		"in_progress", r.tracker.Stats().Followed)
}

func (r *reader) patience(now int64) time.Duration {
	if r.tracker.Busy() || r.options.Busy != nil && r.options.Busy() {
		r.busy = now
	}
	switch {
	case now-r.busy < int64(quietAfter):
		return tickEvery
	case r.storm:
		return stormEvery
	}
	return idle
}

// weigh detects a storm, in which execs are read in batches, for less than 1 % of a core.
func (r *reader) weigh(now int64) error {
	if now-r.weighedAt < int64(idle) {
		return nil
	}
	perSecond := float64(r.programs-r.weighed) / (float64(now-r.weighedAt) / 1e9)
	r.weighed, r.weighedAt = r.programs, now
	r.looker.refill()
	r.looker.suspends.Look()
	runtime := *r.looker.anchored.Load()
	switch {
	case r.hastens(now):
	case len(runtime) > 0 && perSecond > stormAbove: // the runtime may have changed
		r.storm = true
		return r.alarm.onlyForksOf(runtime)
	case r.storm:
		return r.calm()
	}
	return nil
}

func (r *reader) hastens(now int64) bool { return r.tracker.Busy() || now-r.hot < int64(hotFor) }

func (r *reader) calm() error {
	r.storm = false
	return r.alarm.onlyPrograms()
}

func (r *reader) drain(wait time.Duration) error {
	for ; ; wait = 0 {
		began := clock.Monotonic()
		n, err := r.all.read(wait)
		switch {
		case errors.Is(err, errLost):
			r.gaps.forget()
			r.tracker.Lost(1)
			continue
		case err != nil:
			return err
		}
		last := r.take(n, began)
		if n < batch {
			return r.tend(began, began)
		}
		if began-r.ticked > int64(tickEvery) {
			if err := r.tend(began, last); err != nil {
				return err
			}
			rest()
		}
	}
}

// rest makes the thread sleep: a goroutine would wake only after unprioritized threads.
func rest() {
	pause := unix.NsecToTimespec(int64(breath))
	_ = unix.Nanosleep(&pause, nil)
}

func (r *reader) take(n int, now int64) (last int64) {
	var lost uint64
	for i := range n {
		m, ok := r.all.message(i)
		if !ok || m.what == 0 { // answer to a subscription
			continue
		}
		lost += r.gaps.take(m, now)
		last, r.heard = m.time, now
		switch {
		case m.what == whatExec:
			r.programs++
		case m.what == whatFork && m.data[2] == m.data[3] && r.looker.anchor(m.data[1]):
			r.hot = now
		}
		if notice, ok := m.notice(); ok {
			if notice.Kind == proctracker.Ended {
				r.waits.over(notice.PID, notice.Time, r.tracker)
			}
			r.tracker.Take(notice)
		}
	}
	if lost > 0 {
		r.tracker.Lost(lost)
	}
	r.mu.Lock()
	r.stats.Messages += uint64(n)
	r.mu.Unlock()
	return last
}

// tend runs when all messages from before read were taken.
func (r *reader) tend(now, read int64) error {
	if lost := r.gaps.overdue(now - int64(window)); lost > 0 {
		r.tracker.Lost(lost)
	}
	if now-r.busy < int64(quietAfter) && now-r.ticked >= int64(tickEvery) || r.tracker.Busy() {
		r.ticked = now
		lag := int64(0)
		if behind := now - read; behind > int64(50*time.Millisecond) {
			lag = behind
		}
		r.tracker.Advance(read, lag)
		r.waits.look(now, r.tracker)
	}
	if err := r.weigh(now); err != nil {
		return err
	}
	if now-r.counted >= int64(idle) {
		r.counted = now
		r.count()
	}
	return r.listenOn(now)
}

// listenOn subscribes again: before Linux 6.6 another program's unsubscription may stop the messages.
func (r *reader) listenOn(now int64) error {
	switch {
	case r.heard >= r.asked && r.silent:
		r.silent = false
		r.say(now, &event.Degraded{Feature: "process connector", Reason: "the kernel tells of processes again", Restored: true})
	case r.heard >= r.asked && now-r.heard > int64(silence):
		r.asked = now
		return heartbeat()
	case r.heard < r.asked && now-r.asked > int64(heartbeatWithin):
		if !r.silent {
			r.silent = true
			r.tracker.Lost(1)
			r.say(now, &event.Degraded{Feature: "process connector", Reason: "the kernel stopped reporting processes, possibly because another program stopped listening; cniscope subscribed again"})
		}
		r.asked = now
		if err := r.listen(); err != nil {
			return explain(err)
		}
		return heartbeat()
	}
	return nil
}

func (r *reader) say(now int64, body event.Body) { r.sink(event.Event{Time: now, Body: body}) }

func (r *reader) end() error {
	err := r.drain(0)
	r.tracker.Advance(clock.Monotonic()+int64(window), 0)
	r.count()
	return err
}

func (r *reader) count() {
	r.mu.Lock()
	r.stats.Stats = r.tracker.Stats()
	now := r.stats
	r.mu.Unlock()
	if r.options.Tend != nil {
		r.options.Tend(now, !r.hastens(clock.Monotonic()))
	}
}
