package probe

import (
	"context"
	"fmt"
	"time"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/agents"
	"github.com/cniscope/cniscope/pkg/probe/decode"
	"github.com/cniscope/cniscope/pkg/probe/functions"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/probe/trust"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/pkg/text"
)

// The kernel side wakes the reader for a run's exec, an awaited lock's holder, or a filling ring (bpf/maps.h, put).
// Else it polls, for 40 µs of CPU each.
const (
	pollActive = 5 * time.Millisecond // after an event, with a small ring
	pollMost   = dutiesEvery          // with a larger one
	pollQuiet  = 50 * time.Millisecond
	pollSettle = 2 * pollQuiet
	pollShare  = 4  // polls after this share of the pause
	busyShare  = 32 // share of the ring: 16 ms of a process at its quota, 0.5 s of a pod
	quietAfter = time.Second
	sweepEvery = time.Second
)

// Run delivers calls in progress, events until ctx ends, and the rest.
func (p *Probe) Run(ctx context.Context, sink event.Sink) error {
	r := p.reader(sink)
	r.tie()
	r.begin()

	stop := context.AfterFunc(ctx, p.kernel.Records.Wake)
	defer stop()
	if p.drops != nil {
		go p.drops.Run(ctx)
	}
	return (&schedule{
		ring: p.kernel.Records, clock: clock.Monotonic, until: r.deadline, take: r.raw, duties: r.duties,
	}).run(ctx)
}

func (p *Probe) reader(sink event.Sink) *reader {
	stacks := functions.NewStacks()
	r := &reader{
		probe: p,
		decoder: decode.New(decode.Options{
			Arguments: p.options.Arguments, Here: p.numbers.Here, Symbols: p.symbols, Processes: p.options.Processes,
			Environ: environOf(procfs.NewMemory()), Functions: stacks, Garbled: &p.garbled,
		}),
		sink:   sink,
		table:  newTable(p.kernel),
		losses: losses{kernel: p.kernel, said: map[kernel.LifeLostKey]uint64{}},
		now:    clock.Monotonic(), plugins: map[event.Process]*watched{}, publishers: newPublishers(p.kernel.Publishes),
	}
	r.agents = agents.New(p.options.Agents, p.options.Depth, r, &p.unfound)
	r.agents.Functions = stacks
	return r
}

type reader struct {
	probe      *Probe
	decoder    *decode.Decoder
	sink       event.Sink
	table      *table
	losses     losses
	agents     *agents.Agents
	plugins    map[event.Process]*watched
	publishers *publishers

	// the gate's last opening, monotonic ns
	opened int64
	// processes counted soon after that, until the next duties
	census *census

	now  int64
	tied clock.Tie

	taken int // bytes since the last wait

	lastEvent, lastSweep int64
}

func (r *reader) begin() {
	for _, m := range r.probe.kernel.Missing {
		r.Tell(m)
	}
	if r.probe.kernel.Gate.IsOpen() {
		r.Tell(&event.Detail{On: true})
	}
	r.agents.Find(r.now)
	found, denied := r.probe.inFlight(r.found)
	if denied > 0 {
		hidden := fmt.Sprintf("%d processes cannot be read (grant CAP_SYS_PTRACE, and in a container let AppArmor allow it; or their memory is on a mount that hangs)", denied)
		r.Tell(&event.Degraded{Feature: "calls in progress at start", Reason: hidden + "; later calls are observed"})
	}
	r.observing(found)
}

func (r *reader) observing(underWay int) {
	k := r.probe.kernel
	said := []any{"in_progress", underWay, "attach_duration", text.Round(k.Gate.Tried)}
	if k.Way != "" {
		said = append(said, "traced_by", string(k.Way))
	}
	if k.NoFunctions != "" {
		said = append(said, "functions_unavailable", k.NoFunctions)
	}
	r.probe.options.Log.Info("observing CNI calls", said...)
}

func (r *reader) deadline(now int64) time.Time {
	r.now = now
	active, poll := r.pollActive(), pollSettle
	r.taken = 0
	switch {
	case r.table.tracking():
		poll = min(max(time.Duration(r.now-r.lastEvent)/pollShare, active), pollQuiet)
	case r.now-r.lastEvent < int64(quietAfter):
		// Busy may still change
	case r.probe.options.Busy != nil && r.probe.options.Busy():
	default:
		due := r.rest()
		if due == 0 {
			return time.Time{}
		}
		poll = max(poll, time.Duration(due-r.now))
	}
	return time.Now().Add(poll)
}

// pollActive is half of the time in which a root at its quota fills its quarter of the ring; after many records a
// quarter.
func (r *reader) pollActive() time.Duration {
	fills := time.Duration(r.probe.options.Ring / 4 * kernel.ByteTime)
	if r.taken > r.probe.options.Ring/busyShare {
		return min(max(fills/4, pollActive), pollMost/2)
	}
	return min(max(fills/2, pollActive), pollMost)
}

// rest returns when to close the gate, or to sweep last; 0: never.
func (r *reader) rest() (due int64) {
	if last := r.lastEvent + int64(kernel.ConnectedWithin+sweepEvery); r.lastSweep < last {
		due = last
	}
	if closes := r.probe.detail.due(); closes != 0 && (due == 0 || closes < due) {
		due = closes
	}
	return due
}

func (r *reader) raw(now int64, record []byte) {
	r.now = now
	r.taken += len(record)
	events, err := r.decoder.Events(record)
	if err != nil {
		r.probe.undecodable.Add(1)
		r.probe.options.Log.Error("unreadable record from the kernel; please report this", "error", err)
		return
	}
	for _, e := range events {
		r.one(e)
	}
}

func (r *reader) one(e event.Event) {
	if exec, ok := e.Body.(*event.Exec); ok && exec.Root {
		if !exec.InPath {
			// daemon, or debugging shell
			r.table.forget(exec.Process)
			return
		}
		r.look(exec.Call)
		r.tie()
	}
	if exec, ok := e.Body.(*event.Exec); ok && exec.InPath {
		r.publishers.look(exec.PID)
	}
	r.lastEvent = r.now
	r.deliver(e)
}

func (r *reader) found(e *event.Exec, args []string) {
	r.decoder.Found(e, args)
	r.deliver(event.Event{Time: e.Started, Body: e})
	if known := r.table.live[e.Process]; known != nil {
		known.looked = clock.Monotonic() // not its start
	}
}

func (r *reader) deliver(e event.Event) {
	if r.table.note(e) {
		if x, is := e.Body.(*event.Exchange); is {
			r.agents.Introduce(x)
		}
		r.plugs(e.Time, e.Body)
		r.sink(e)
		r.agents.Note(e)
		if accept, is := e.Body.(*event.Accept); is {
			r.followTalk()
			if e.Time <= r.opened {
				r.serves(r.agents.Client(accept.Socket), accept.Agent)
			}
		}
	}
}

func (r *reader) serves(client event.Process, agent event.Actor) {
	entry, ok := r.probe.kernel.Process(kernel.KeyOf(agent.Process, agent.PID).Tgid)
	if ok && client != "" && entry.Agent != 0 && entry.Self == entry.Root {
		if r.census == nil {
			r.census = r.probe.count(r.found)
		}
		r.census.servedBefore(entry, kernel.KeyOf(client, 0).Start)
	}
}

func (r *reader) followTalk() {
	r.lacks("what agents wait for", r.probe.kernel.Gate.Talk.Follow(r.now, r.agents.Following()))
}

func (r *reader) followMisses() {
	polls := r.probe.detail.gate.IsOpen() && r.table.polls(r.now)
	r.lacks("files that plugins poll for", r.probe.kernel.Gate.FollowMisses(r.now, polls))
}

func (r *reader) lacks(feature string, err error) {
	if err != nil {
		r.Tell(&event.Degraded{Feature: feature, Reason: err.Error()})
	}
}

func (r *reader) duties(at watermark) {
	r.now = at.now
	r.census = nil
	for _, lost := range r.losses.new() {
		r.Tell(lost)
	}
	if r.now-r.lastSweep > int64(sweepEvery) {
		r.lastSweep = r.now
		r.sweep(at)
	}
	r.agents.Tend(at.passed)
	r.halts()
	r.lookAtPlugins()
	r.followTalk()
	r.followMisses()
	r.closeIdleGate()
	r.sink(event.Event{Time: at.passed, Body: &event.Tick{Lag: at.lag}})
}

func (r *reader) sweep(at watermark) {
	for _, exit := range r.table.reconcile(at) {
		e := event.Event{Time: at.passed, Body: exit}
		r.sink(e)
		r.agents.Note(e)
	}
	r.losses.forget(r.table.roots)
	for _, agent := range r.table.strangers {
		r.agents.Adopt(at.now, agent)
	}
	r.decoder.Keep(r.table.follows, at.passed-int64(agents.Linger))
	r.probe.kernel.ForgetGone(at.now, r.table.numbers, func(k kernel.Key) bool { return r.table.follows(kernel.ProcessOf(k)) })
}

func (r *reader) look(call *event.Call) {
	if call == nil || !r.probe.detail.wants(call.Command) {
		return
	}
	r.agents.Expect(r.now)
	r.followTalk()
	opened, err := r.probe.detail.open(r.now)
	r.lacks(kernel.Inside, err)
	if opened {
		r.opened = clock.Monotonic()
		r.Tell(&event.Detail{On: true})
	}
}

func (r *reader) closeIdleGate() {
	d := &r.probe.detail
	if r.table.tracking() {
		d.used = r.now
	}
	if due := d.due(); due == 0 || r.now < due {
		return
	}
	if err := d.gate.Calls.Follow(r.now, false); err != nil {
		r.probe.options.Log.Warn("cannot detach from system calls", "error", err)
	}
	r.probe.kernel.ForgetCalls()
	r.decoder.ForgetWaits()
	r.Tell(&event.Detail{})
}

func (r *reader) tie() {
	if mono, wall, tell := r.tied.Again(); tell {
		r.sink(event.Event{Time: mono, Body: &event.Clock{Wall: wall}})
	}
}

var _ agents.Follower = (*reader)(nil)

func (r *reader) Tell(b event.Body) {
	if x, is := b.(*event.Exchange); is {
		r.decoder.Redact(x)
	}
	r.sink(event.Event{Time: r.now, Body: b})
}

func (r *reader) Follow(key kernel.Key, depth int) (kernel.Key, bool) {
	entry := kernel.LifeProcess{Self: key, Root: key, Agent: uint8(depth), OnNode: 1, Home: trust.Namespace(key.Pid, "net"), Since: uint64(clock.Monotonic())}
	// Rights are read before the liveness, so they are of the same process.
	if depth > 0 && r.MayServe(key.Pid) && agents.Alive(key) {
		stat, _ := procfs.StatOf(int(key.Pid))
		entry.Session, entry.Mounts = uint32(stat.Session), trust.Namespace(key.Pid, "mnt")
		r.probe.kernel.Insert(&entry)
	}
	// The process may belong to a plugin's tree instead.
	entry, ok := r.probe.kernel.Process(key.Tgid)
	if !ok || entry.Agent == 0 {
		return key, false
	}
	process := kernel.ProcessOf(entry.Self)
	r.table.add(process)
	r.decoder.Serve(process, int(entry.Agent))
	return entry.Self, true
}

// Key takes our namespace's PID.
func (r *reader) Key(pid uint32) (kernel.Key, bool) { return r.probe.numbers.Key(pid) }

func (r *reader) MayServe(pid uint32) bool {
	return r.probe.node.PrivilegedHere(pid)
}

func (r *reader) Watch(agent kernel.Key) {
	r.publishers.look(agent.Pid)
	r.probe.kernel.Watch(agent)
}

func (r *reader) Habits(agent kernel.Key) []string {
	return r.decoder.Programs(r.probe.kernel.Habits(agent))
}

// Unfollow leaves descendants followed.
func (r *reader) Unfollow(process event.Process) {
	r.table.remove(process)
	r.decoder.Dismiss(process)
}

func (r *reader) Depth(process event.Process) (int, bool) {
	if !r.table.follows(process) {
		return 0, false
	}
	return r.decoder.Depth(process), true
}

type detail struct {
	when   Detail
	linger linger
	gate   *kernel.Gate
	used   int64 // last use, monotonic ns
}

// wants excludes STATUS, which is frequent.
func (d *detail) wants(command string) bool {
	switch command {
	case "ADD", "DEL", "CHECK", "GC":
		return d.when != DetailCommands
	}
	return false
}

// open reports whether the gate was closed; after a failure it stays so.
func (d *detail) open(now int64) (opened bool, err error) {
	if d.used != 0 {
		d.linger.note(time.Duration(now - d.used))
	}
	d.used = now
	if opened, err = d.gate.Open(now); err != nil {
		d.when = DetailCommands
	}
	return opened, err
}

// due returns when to close the gate; 0: never.
func (d *detail) due() int64 {
	if d.when != DetailAuto || !d.gate.IsOpen() {
		return 0
	}
	return d.used + int64(d.linger.length())
}
