package probe

import (
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"

	"github.com/cniscope/cniscope/pkg/clock"
)

// insides is the part of the kernel side that looks into processes. What of it the kernel
// cannot do is left out by name.
type insides struct {
	maps  insideMaps
	all   *ebpf.Collection // nil where nothing is looked into
	links []link.Link      // what is attached as long as the probe is
	gate  gate
	// missing are the features that this kernel does not have, and why.
	missing []missing
}

type missing struct{ feature, reason string }

// hook is one program of the kernel side: where it is attached, and what is lost without.
type hook struct {
	program, tracepoint string
	// demand: it is attached only while the gate is open.
	demand bool
	// feature is what a kernel without the tracepoint cannot do, since when it can;
	// empty where nothing can be done without it.
	feature, since string
}

func hooks() []hook {
	return []hook{
		{"on_return", "sys_exit", true, "", ""},
		{"on_enter", "sys_enter", true, "", ""},
		{"on_contention_end", "contention_end", true, "waits for the kernel's own locks", "5.19"},
		{"on_contention", "contention_begin", true, "waits for the kernel's own locks", "5.19"},
		{"on_tcp_state", "inet_sock_set_state", false, "first connection, refused connections", "4.16"},
	}
}

// openInside loads what looks into processes. It never fails: without it there are still
// runs and commands, and missing says why.
func (p *Probe) openInside(kernel *btf.Spec) {
	in := &p.inside
	in.gate.mode, in.gate.linger = p.options.Detail, p.options.Linger
	if p.options.Detail == DetailCommands {
		return
	}
	if err := p.loadInside(kernel); err != nil {
		in.missing = append(in.missing, missing{"inside of plugins", err.Error()})
		return
	}
	for _, h := range hooks() {
		program := in.all.Programs[h.program]
		switch {
		case program == nil: // said already
		case h.demand:
			in.gate.programs = append(in.gate.programs, program)
		default:
			l, err := link.AttachTracing(link.TracingOptions{Program: program})
			if err != nil {
				in.missing = append(in.missing, missing{h.feature, fmt.Sprintf("attaching %s: %v", h.tracepoint, err)})
				continue
			}
			in.links = append(in.links, l)
		}
	}
	if p.options.Detail == DetailAlways {
		if err := in.gate.open(clock.Monotonic()); err != nil {
			in.missing = append(in.missing, missing{"inside of plugins", err.Error()})
		}
	}
}

func (p *Probe) loadInside(kernel *btf.Spec) error {
	in := &p.inside
	spec, err := loadInside()
	if err != nil {
		return fmt.Errorf("reading the embedded programs: %w", err)
	}
	p.shape(spec)
	spec.Maps["contentions"].MaxEntries = uint32(p.options.Processes)
	if err := errors.Join(p.constants(spec), spec.Variables["class_of"].Set(classes()), spec.Variables["agent_depth"].Set(uint8(p.options.Depth))); err != nil {
		return fmt.Errorf("setting options: %w", err)
	}
	said := map[string]bool{}
	for _, h := range hooks() {
		var known *btf.Typedef
		if kernel.TypeByName("btf_trace_"+h.tracepoint, &known) == nil || h.feature == "" {
			continue
		}
		delete(spec.Programs, h.program)
		if !said[h.feature] {
			said[h.feature] = true
			in.missing = append(in.missing, missing{h.feature, "needs Linux " + h.since})
		}
	}
	o := &p.objects
	in.all, err = ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: map[string]*ebpf.Map{
		"processes": o.Processes, "events": o.Events, "counters": o.Counters, "losses": o.Losses, "accounts": o.Accounts, "calls": o.Calls, "slots": o.Slots,
	}})
	if err != nil {
		return fmt.Errorf("loading: %w", err)
	}
	return in.all.Assign(&in.maps)
}

// classes is the table by which the kernel side knows system calls.
func classes() (table [512]uint8) {
	for _, number := range brief() {
		table[number] = uint8(insideClassCLASS_NEVER)
	}
	for _, c := range calls() {
		if c.number < len(table) {
			table[c.number] = uint8(c.class)
		}
	}
	return table
}

func (in *insides) close(now int64) error {
	errs := []error{in.gate.close(now)}
	for _, l := range in.links {
		errs = append(errs, l.Close())
	}
	if in.all != nil {
		in.all.Close()
	}
	return errors.Join(errs...)
}

// forgetCalls empties what is kept of system calls and connections under way: nobody will
// tell of their ends. Call it when the gate has been closed.
func (p *Probe) forgetCalls() {
	clearMap[uint32, bpfCall](p.objects.Calls)
	removeFrom(p.inside.maps.Conns, func(_ uint64, c *insideConn) bool {
		p.disconnect(c.P.Root)
		return true
	})
	clearMap[insidePair, insideHalf](p.inside.maps.Pairs)
	clearMap[uint32, insideContended](p.inside.maps.Contentions)
}

// forgetGone drops what is kept of processes and threads that are gone: files that a
// process leaves open are closed without a system call, and of threads that end at once
// the last one takes their process out of the table before the others are through.
func (p *Probe) forgetGone(t *table) {
	var entry bpfProcess
	untracked := func(tgid uint32) bool {
		return !t.numbers[tgid] && errors.Is(p.objects.Processes.Lookup(tgid, &entry), ebpf.ErrKeyNotExist)
	}
	removeFrom(p.inside.maps.Conns, func(_ uint64, c *insideConn) bool {
		// What the kernel side follows may still be on its way to the reader.
		if t.live[processKey(c.P.Self)] != nil || !untracked(c.P.Self.Tgid) {
			return false
		}
		p.disconnect(c.P.Root)
		return true
	})
	var conn insideConn
	removeFrom(p.inside.maps.Pairs, func(_ insidePair, h *insideHalf) bool {
		return p.inside.maps.Conns.Lookup(h.Sk, &conn) != nil || conn.Ino != h.Ino
	})
	removeFrom(p.objects.Calls, func(_ uint32, c *bpfCall) bool { return untracked(c.Tgid) })
	now := uint64(clock.Monotonic())
	removeFrom(p.inside.maps.Awaited, func(_ uint64, since *uint64) bool { return now-*since > uint64(connectedWithin) })
}

// connectedWithin is how long the first connection of a pod is waited for.
const connectedWithin = time.Minute

func clearMap[K, V any](m *ebpf.Map) {
	removeFrom(m, func(K, *V) bool { return true })
}

// removeFrom deletes the entries that gone says are.
func removeFrom[K, V any](m *ebpf.Map, gone func(K, *V) bool) {
	each(m, func(key *K, value *V) {
		if gone(*key, value) {
			_ = m.Delete(*key) // gone by itself is as good
		}
	})
}
