package kernel

import (
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"

	"github.com/cniscope/cniscope/pkg/event"
)

// Options of the kernel side.
type Options struct {
	// bytes: a power of two, at least a page
	Ring int
	// bounds processes, system calls and roots
	Processes int
	// 0: no agents, 1: plugins' agents
	Depth    int
	Rootless bool
	// the shortest reported netlink query; 0: all are
	MinSpan time.Duration
	Inside  bool
	// inode number of cniscope's PID namespace
	PIDNamespace uint32
	// PIDNamespace is not the initial one
	Nested bool
	// for tests: a refusal of WayFunctions is an error
	Way Way
	// inode numbers of the host's namespaces; 0: unknown
	Mounts, Net uint32
}

// Side is the loaded and attached kernel side.
type Side struct {
	// Inside is nil without tracing.
	Life    LifeMaps
	Inside  InsideTables
	Gate    Gate
	Records *Ring
	// Way is empty without tracing; NoFunctions is why it is not WayFunctions.
	Way         Way
	NoFunctions string
	// the kernel refused system-call tracing
	Commands bool
	Missing  []*event.Degraded
	// programs by name; on_return includes those that it calls (end_file, end_lock…)
	Programs map[string]*ebpf.Program

	loaded              []*ebpf.Collection
	attached, functions attachments
	numbers             *link.Iter // nil unless Options.Nested
	counters            counters
	left                int32 // see shareLeft
	uncounted           int   // see recount
}

// Open calls anchors, which adds the runtime, before it attaches. It needs CAP_BPF and CAP_PERFMON (before 5.8
// CAP_SYS_ADMIN), and Linux 5.8 with BTF, else returns an UnsupportedError.
func Open(o Options, anchors func(*Side)) (_ *Side, err error) {
	s := &Side{Programs: map[string]*ebpf.Program{}}
	defer func() {
		if err != nil {
			_ = s.Close(0)
		}
	}()
	// Needed before Linux 5.11; a failure shows at loading.
	_ = rlimit.RemoveMemlock()
	err = s.openLife(o, false)
	if isWithheld(err) { // without bpf_rdonly_cast, before Linux 6.2
		err = errors.Join(s.withholds(o), s.openLife(o, true))
	}
	if err != nil {
		return nil, err
	}
	anchors(s)
	if err := s.attached.attach(s.named(lifeHooks)...); err != nil {
		return nil, unsupported(err)
	}
	types, err := btf.LoadKernelSpec()
	if err != nil {
		return nil, unsupported(err)
	}
	s.Missing = append(s.Missing, lacking(types)...)
	if o.Inside {
		if err := s.openSome(o, types); err != nil {
			if o.Way == WayFunctions {
				return nil, err
			}
			s.Missing = append(s.Missing, &event.Degraded{Feature: Inside, Reason: insideRefused(err)})
			s.Commands = true
		}
	}
	// The kernel's types were megabytes.
	debug.FreeOSMemory()
	releaseObjects()
	if s.Records, err = openRing(s.Life.Events); err != nil {
		return nil, fmt.Errorf("kernel probe: opening the ring buffer: %w", err)
	}
	return s, nil
}

// openLife loads the programs for starts and exits. withheld: helpers may not read kernel memory.
func (s *Side) openLife(o Options, withheld bool) error {
	spec, err := LoadLife()
	if err != nil {
		return fmt.Errorf("kernel probe: reading the embedded programs: %w", err)
	}
	if err := errors.Join(
		o.shape(spec), spec.Variables["node_mounts"].Set(o.Mounts), spec.Variables["withheld"].Set(flag(withheld)),
		spec.Variables["rootless"].Set(flag(o.Rootless)), spec.Variables["share_max"].Set(uint32(o.Processes/2)),
	); err != nil {
		return fmt.Errorf("kernel probe: setting options: %w", err)
	}
	numbers := takeNumbers(spec)
	if err := s.load(spec, nil, &s.Life); err != nil {
		return unsupported(err)
	}
	if err := s.counters.open(s.Life.Counters); err != nil {
		return fmt.Errorf("kernel probe: mapping the counters: %w", err)
	}
	if !o.Nested {
		return nil
	}
	if err := s.openNumbers(numbers); err != nil {
		s.Missing = append(s.Missing, &event.Degraded{Feature: "numbers of processes", Reason: err.Error()})
	}
	return nil
}

// InsideTables are for either Way.
type InsideTables struct {
	Conns       *ebpf.Map `ebpf:"conns"`
	Pairs       *ebpf.Map `ebpf:"pairs"`
	Streams     *ebpf.Map `ebpf:"streams"`
	Roles       *ebpf.Map `ebpf:"roles"`
	Awaited     *ebpf.Map `ebpf:"awaited"`
	Contentions *ebpf.Map `ebpf:"contentions"`
	Waiting     *ebpf.Map `ebpf:".data.waiting"`
}

func (t *InsideTables) close() error {
	var errs []error
	for _, m := range []*ebpf.Map{t.Conns, t.Pairs, t.Streams, t.Roles, t.Awaited, t.Contentions, t.Waiting} {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}

func (s *Side) openSome(o Options, types *btf.Spec) error {
	way, why := choose(types)
	if o.Way != "" {
		way, why = o.Way, "system calls were asked for"
	}
	if way == WayFunctions {
		err := s.openFunctions(o, types)
		if err == nil || o.Way == WayFunctions {
			s.Way = WayFunctions
			return err
		}
		why = functionsRefused(err)
	}
	s.NoFunctions = why
	if err := s.openInside(o, types); err != nil {
		return err
	}
	s.Way = WaySystemCalls
	return nil
}

func (s *Side) openInside(o Options, types *btf.Spec) error {
	spec, err := LoadInside()
	if err != nil {
		return fmt.Errorf("reading the embedded programs: %w", err)
	}
	if err := errors.Join(o.shapeInside(spec), spec.Variables["regs_at"].Set(registersAt(types))); err != nil {
		return fmt.Errorf("setting options: %w", err)
	}
	s.Missing = append(s.Missing, leaveOut(spec, types)...)
	if err := s.load(spec, s.shared(), &s.Inside); err != nil {
		return fmt.Errorf("loading: %w", err)
	}
	for _, h := range insideHooks {
		program := s.Programs[h.program]
		switch {
		case program == nil:
		case h.demand && h.feature == "":
			s.Gate.Calls.programs = append(s.Gate.Calls.programs, program)
		case h.demand:
			s.Gate.rest = append(s.Gate.rest, program)
		default:
			if err := s.attached.attach(program); err != nil {
				s.Missing = append(s.Missing, &event.Degraded{Feature: h.feature, Reason: err.Error()})
			}
		}
	}
	s.Gate.misses.programs = s.named([]string{missHook})
	return s.tryGate()
}

func (s *Side) tryGate() (err error) {
	s.Gate.missed = s.loaded[len(s.loaded)-1].Maps["misses"]
	if s.Gate.before, err = openPast(s.Programs); err != nil {
		s.Missing = append(s.Missing, &event.Degraded{Feature: "connections from before the inside was looked into", Reason: err.Error()})
	}
	s.Gate.Calls.then = s.Gate.attachRest
	return s.Gate.Try()
}

func (s *Side) shared() map[string]*ebpf.Map {
	l := &s.Life
	return map[string]*ebpf.Map{
		"processes": l.Processes, "events": l.Events, "counters": l.Counters, "losses": l.Losses, "accounts": l.Accounts, "calls": l.Calls, "slots": l.Slots,
		"publishers": l.Publishers, "publishing": l.Publishing,
	}
}

func (o Options) shapeInside(spec *ebpf.CollectionSpec) error {
	spec.Maps["contentions"].MaxEntries = uint32(o.Processes)
	return errors.Join(
		o.shape(spec), spec.Variables["class_of"].Set(classes()), spec.Variables["texts_of"].Set(texts()), spec.Variables["agent_depth"].Set(uint8(o.Depth)),
		spec.Variables["min_span"].Set(uint64(min(o.MinSpan, lasted))), spec.Variables["questions_of"].Set(questions()),
		spec.Variables["timeout_of"].Set(timeouts()), spec.Variables["path_of"].Set(paths()),
	)
}

func (o Options) shape(spec *ebpf.CollectionSpec) error {
	spec.Maps["events"].MaxEntries = uint32(o.Ring)
	for _, name := range []string{"processes", "calls", "accounts"} {
		spec.Maps[name].MaxEntries = uint32(o.Processes)
	}
	return errors.Join(
		spec.Variables["pid_ns"].Set(o.PIDNamespace),
		spec.Variables["node_net"].Set(o.Net),
		spec.Variables["ring_high"].Set(uint64(o.Ring/4)),
		spec.Variables["quota"].Set(Quota(o.Ring)),
		spec.Variables["root_share"].Set(share(o.Processes)),
	)
}

func (s *Side) load(spec *ebpf.CollectionSpec, shared map[string]*ebpf.Map, to any) error {
	c, err := newCollection(spec, ebpf.CollectionOptions{MapReplacements: shared})
	if err != nil {
		return err
	}
	s.loaded = append(s.loaded, c)
	maps.Copy(s.Programs, c.Programs)
	return c.Assign(to)
}

// Close detaches; now is in monotonic ns.
func (s *Side) Close(now int64) error {
	errs := []error{
		s.Gate.Calls.Follow(now, false), s.Gate.put(), s.attached.close(), s.functions.closeWithin(detachWithin),
		s.counters.close(),
	}
	if s.numbers != nil {
		errs = append(errs, s.numbers.Close())
	}
	if s.Records != nil {
		errs = append(errs, s.Records.Close())
	}
	for _, c := range s.loaded {
		c.Close()
	}
	return errors.Join(append(errs, s.Inside.close(), s.Life.Close())...)
}
