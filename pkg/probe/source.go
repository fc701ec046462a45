package probe

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/meter"
	"github.com/cniscope/cniscope/pkg/privilege"
	"github.com/cniscope/cniscope/pkg/probe/proctracker"
	"github.com/cniscope/cniscope/pkg/source"
)

// Source attaches the probe during Run.
type Source struct {
	attached func()
	observer atomic.Pointer[observer]

	mu      sync.Mutex
	options Options
	changed context.CancelFunc // nil before Run
}

type observer struct {
	// instead is why the preferred observer is not used.
	name    string
	instead *event.Degraded
	// needs CAP_NET_ADMIN
	network  bool
	run      func(context.Context, event.Sink) error
	readings func() []meter.Reading
	// makes it ask Options.Busy again; may be nil
	wake  func()
	close func() error
	drops source.Drops // may be nil
}

// NewSource calls attached, if set, at each start.
func NewSource(o Options, attached func()) *Source {
	if attached == nil {
		attached = func() {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Source{options: o, attached: attached}
}

// Name returns "probe".
func (*Source) Name() string { return "probe" }

// Switch detaches the probe if options changed, and attaches it again unless off is set.
func (s *Source) Switch(off bool, detail Detail) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if off == s.options.Off && detail == s.options.Detail {
		return
	}
	s.options.Off, s.options.Detail = off, detail
	if s.changed != nil {
		s.changed()
	}
}

func (s *Source) current(ctx context.Context) (context.Context, Options) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, s.changed = context.WithCancel(ctx)
	return ctx, s.options
}

// Run attaches the probe, drops privileges, and observes until ctx ends. It may return an UnsupportedError.
func (s *Source) Run(ctx context.Context, sink event.Sink) error {
	tell := func(body event.Body) { sink(source.Now(body)) }
	for whole := true; ctx.Err() == nil; whole = false {
		unchanged, options := s.current(ctx)
		if !options.Off {
			if err := s.observe(unchanged, options, whole, sink); err != nil || ctx.Err() != nil {
				return err
			}
			tell(&event.Degraded{Feature: event.Probe, Reason: "detached, because its options changed"})
			continue
		}
		if whole {
			tell(&event.Degraded{Feature: event.Probe, Reason: "probe.enabled is false"})
		}
		s.attached()
		s.rest(unchanged, options, sink)
	}
	return nil
}

// rest sends ticks for operations that are still open.
func (*Source) rest(ctx context.Context, options Options, sink event.Sink) {
	every := time.NewTicker(restTick)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
			if options.Busy != nil && options.Busy() {
				sink(source.Now(&event.Tick{}))
			}
		}
	}
}

const restTick = 200 * time.Millisecond

// observe returns when ctx has ended and the probe is detached. whole: it was not off before.
func (s *Source) observe(ctx context.Context, options Options, whole bool, sink event.Sink) error {
	o, err := attach(options)
	if err != nil {
		return err
	}
	defer func() { _ = o.close() }()
	tell := func(body event.Body) { sink(source.Now(body)) }
	if !whole {
		tell(&event.Degraded{Feature: event.Probe, Reason: "attached again", Restored: true})
	}
	tell(&event.Origin{Source: o.name})
	if o.instead != nil {
		tell(o.instead)
	}
	s.observer.Store(o)
	defer s.observer.Store(nil)
	s.attached()
	if kept, err := privilege.Drop(o.network); err != nil {
		tell(&event.Degraded{Feature: "dropping privileges", Reason: err.Error() + "; cniscope goes on with all it was given"})
	} else {
		options.Log.Debug("dropped unneeded capabilities", "kept", kept)
	}
	return o.run(ctx, sink)
}

// Wake makes it ask Options.Busy again, and is safe for concurrent use.
func (s *Source) Wake() {
	if o := s.observer.Load(); o != nil && o.wake != nil {
		o.wake()
	}
}

// Drops may return nil.
func (s *Source) Drops() source.Drops {
	if o := s.observer.Load(); o != nil {
		return o.drops
	}
	return nil
}

func (s *Source) off() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.options.Off
}

// Stats returns the attachment state and counters.
func (s *Source) Stats() source.Stats {
	stats := source.Stats{
		State: "not attached", Unready: true,
		Features: []string{event.Probe, "dropping privileges"}, Losses: losable,
	}
	if s.off() {
		stats.State, stats.Unready = "off: probe.enabled is false", false
	}
	up := 0
	if o := s.observer.Load(); o != nil {
		up = 1
		stats.State, stats.Unready = "attached"+limits[o.name], false
		stats.Readings = o.readings()
		for _, r := range stats.Readings {
			if r.Name == programsMissed {
				stats.Missed += uint64(r.Value)
			}
		}
		stats.Readings = append(stats.Readings, meter.Level("probe_source", "How processes are observed: bpf, bpf-commands (the kernel hides its memory from BPF programs), connector (the kernel refuses them).", 1, "source", o.name))
	}
	if up == 1 || stats.Unready { // CniscopeBlind is not for a probe that is off
		stats.Readings = append(stats.Readings, meter.Level("probe_attached",
			"1 if cniscope sees calls; absent while probe.enabled is false.", up))
	}
	return stats
}

// limits follow "attached" in a source's state.
var limits = map[string]string{
	SourceConnector: " by the process connector: plugins and commands, not what they ask of the kernel",
	SourceCommands:  ": plugins and commands, not what they ask of the kernel",
	SourceETW:       " by event tracing: plugins and commands, not what they ask of Windows",
	SourceSnapshots: " by snapshots of the process table: plugins and commands, but those that end within an interval",
}

const programsMissed = "bpf_program_missed_total"

var losable = []string{
	"ring full", proctracker.LostRoom, "over quota", "connection table full", "stream table full", "system call table full",
	"list of locks too long",
	proctracker.LostNotices, proctracker.LostSight, proctracker.LostCall,
}

// Readings returns s as metrics.
func (s Stats) Readings() []meter.Reading {
	all := []meter.Reading{
		meter.Level("probe_processes", "Processes in the kernel's table.", s.Tracked),
		meter.Count("probe_environments_cut_total", "Environments too long to search for CNI_COMMAND to their end.", s.Lost["environment too long"]),
		meter.Count("probe_processes_refused_total", "Processes of plugin runs that the container runtime did not start, beyond their half of limits.processes.", s.Lost["share of the process table full"]),
		meter.Count("probe_starts_refused_total", "Programs of starting sandboxes beyond 1,024, which have no span.", s.Lost["table of sandbox starts full"]),
		meter.Count("probe_records_undecodable_total", "Unknown records of BPF programs. Report them.", s.Undecodable),
		meter.Count("probe_peers_unfound_total", "Agents' waits for a process of the node that was not found in time: the verdict has only its address.", s.Unfound),
		meter.Count("probe_thread_contexts_invalid_total",
			"Contexts of threads of plugins and agents (OTEP 4947) that were unreadable or invalid.", s.Garbled),
		meter.Count("probe_seconds_total", "Time since the probe was loaded.", s.Observed.Seconds()),
		meter.Count("probe_detail_seconds_total", "Time with system-call tracing on. Divided by probe_seconds_total it is the share in which other processes pay.", s.Attached.Seconds()),
	}
	if s.Way != "" {
		all = append(all,
			meter.Level("probe_way", "How the probe sees what plugins do: by functions of the kernel, or by system-calls, which slows other processes during CNI calls.", 1, "way", s.Way),
			meter.Count("probe_talk_seconds_total", "By functions: time in which an agent was followed, and system calls of the node cost as much as by system calls.", s.Talked.Seconds()))
	}
	for name, program := range s.Programs {
		all = append(all, meter.Count(programsMissed, "Times the kernel did not run a BPF program because it was active on that CPU: events lost without a mark on the call.", program.Missed, "program", name))
		if program.Runs == 0 {
			continue
		}
		all = append(all,
			meter.Count("bpf_program_runs_total", "Runs of a BPF program, only while kernel.bpf_stats_enabled is 1.", program.Runs, "program", name),
			meter.Count("bpf_program_seconds_total", "Time in a BPF program, only while kernel.bpf_stats_enabled is 1.", program.Time.Seconds(), "program", name))
	}
	return all
}
