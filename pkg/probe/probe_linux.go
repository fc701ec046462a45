package probe

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cniscope/cniscope/pkg/anchor"
	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/drops"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/probe/symbols"
	"github.com/cniscope/cniscope/pkg/probe/trust"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// Probe is the kernel side with its reader.
type Probe struct {
	options Options
	kernel  *kernel.Side
	detail  detail
	numbers *numbers
	opened  int64 // monotonic ns
	symbols *symbols.Table
	drops   *drops.Watch // may be nil
	node    trust.Node
	unwatch func()

	undecodable atomic.Uint64
	unfound     atomic.Uint64
	garbled     atomic.Uint64
}

// Open attaches the kernel side, whose events collect in the ring. It needs what kernel.Open needs.
func Open(o Options) (_ *Probe, err error) {
	p := &Probe{options: o, opened: clock.Monotonic(), node: trust.NewNode(o.Anchors, o.Rootless), symbols: new(symbols.Table), unwatch: func() {}}
	defer func() {
		if err != nil {
			_ = p.Close()
		}
	}()
	if err := clock.CheckNamespace(procfs.Tick); err != nil {
		return nil, fmt.Errorf("kernel probe: %w", err)
	}
	inPIDs, err := procfs.OwnNamespace("pid")
	if err != nil {
		return nil, fmt.Errorf("kernel probe: finding our PID namespace: %w", err)
	}
	initial := inPIDs == procfs.InitialPID
	if o.Detail != DetailCommands {
		if p.symbols, err = symbols.Open(); err != nil {
			o.Log.Debug("names of kernel locks unavailable", "error", err)
		}
	}
	mounts, net := p.node.Namespaces()
	var undropped error
	if o.Detail != DetailCommands {
		p.drops, undropped = drops.Open(net)
	}
	if p.kernel, err = kernel.Open(kernel.Options{
		Ring: o.Ring, Processes: o.Processes, Depth: o.Depth, Rootless: o.Rootless, MinSpan: o.MinSpan,
		Inside: o.Detail != DetailCommands, Way: kernel.Way(o.Way), PIDNamespace: inPIDs, Nested: !initial, Mounts: mounts, Net: net,
	}, p.watchAnchors); err != nil {
		return nil, err
	}
	if undropped != nil {
		p.kernel.Missing = append(p.kernel.Missing, &event.Degraded{Feature: "who drops packets", Reason: undropped.Error()})
	}
	p.numbers = newNumbers(initial, p.kernel)
	p.detail = detail{when: o.Detail, linger: linger{most: o.Linger}, gate: &p.kernel.Gate}
	if o.Detail == DetailAlways {
		if _, err := p.detail.open(p.opened); err != nil {
			p.kernel.Missing = append(p.kernel.Missing, &event.Degraded{Feature: "inside of plugins", Reason: err.Error()})
		}
	}
	return p, nil
}

func (p *Probe) source() string {
	if p.kernel.Commands {
		return SourceCommands
	}
	return SourceBPF
}

func (p *Probe) watchAnchors(side *kernel.Side) {
	if p.options.Anchors == nil {
		return
	}
	p.unwatch = p.options.Anchors.Watch(func(anchors []anchor.Anchor) {
		if err := setAnchors(side, anchors); err != nil {
			p.options.Log.Warn("BPF programs do not know the runtime's processes", "error", err)
		}
	})
}

// setAnchors adds before it deletes, so that none is ever missing. The error names those without room.
func setAnchors(side *kernel.Side, anchors []anchor.Anchor) error {
	var errs []error
	now := map[uint32]bool{}
	for _, a := range anchors {
		pid, entry := uint32(a.PID), kernel.LifeAnchor{Start: uint64(a.Start) / uint64(procfs.Tick)}
		if a.Rootless {
			entry.Rootless = 1
		}
		if err := side.Life.Anchors.Put(pid, entry); err != nil {
			errs = append(errs, fmt.Errorf("process %d: %w", pid, err))
			continue
		}
		now[pid] = true
	}
	kernel.Each(side.Life.Anchors, func(pid *uint32, _ *kernel.LifeAnchor) {
		if !now[*pid] {
			_ = side.Life.Anchors.Delete(*pid)
		}
	})
	_ = side.Life.Beliefs.Put(uint32(kernel.LifeBeliefANCHORED), uint32(min(len(now), 1)))
	return errors.Join(errs...)
}

// Close detaches the kernel side.
func (p *Probe) Close() error {
	p.unwatch()
	err := p.symbols.Close()
	if p.drops != nil {
		p.drops.Close()
	}
	if p.kernel != nil {
		err = errors.Join(p.kernel.Close(clock.Monotonic()), err)
	}
	return err
}

// Stats is safe for concurrent use.
func (p *Probe) Stats() Stats {
	now := clock.Monotonic()
	s := Stats{
		Lost:        map[string]uint64{},
		Undecodable: p.undecodable.Load(), Unfound: p.unfound.Load(), Garbled: p.garbled.Load(),
		Programs: map[string]ProgramStats{},
		Observed: time.Duration(now - p.opened),
		Attached: p.kernel.Gate.Calls.Lasted(now),
		Talked:   p.kernel.Gate.Talk.Lasted(now),
		Way:      string(p.kernel.Way),
	}
	for i, n := range p.kernel.Counters() {
		s.Lost[reasons[i]] = n
	}
	kernel.Each(p.kernel.Life.Processes, func(*uint32, *kernel.LifeProcess) { s.Tracked++ })
	for name, program := range p.kernel.Programs {
		hook, attached := strings.CutPrefix(name, "on_")
		if st, err := program.Stats(); err == nil && attached {
			s.Programs[hook] = ProgramStats{Runs: st.RunCount, Time: st.Runtime, Missed: st.RecursionMisses}
		}
	}
	return s
}
