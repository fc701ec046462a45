// Package decode turns the kernel side's records into named, bounded and sanitized events.
package decode

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"slices"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/evidence"
	"github.com/cniscope/cniscope/pkg/probe/functions"
	"github.com/cniscope/cniscope/pkg/probe/image"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/pkg/redact"
	"github.com/cniscope/cniscope/pkg/tree"
)

// New returns a Decoder.
func New(o Options) *Decoder {
	o.Garbled = cmp.Or(o.Garbled, new(atomic.Uint64))
	return &Decoder{
		options:   o,
		tree:      tree.New(o.Processes),
		processes: map[event.Process]*process{},
		byNumber:  map[uint32]event.Process{},
		names:     kernel.SyscallNames(),
		holders:   map[uint32]*holder{},
		links:     names{},
		sandboxes: evidence.Sandboxes{},
		steps:     steps{},
		seed:      maphash.MakeSeed(),
	}
}

// Events returns a record's events in order, until the next call.
func (d *Decoder) Events(raw []byte) ([]event.Event, error) {
	if len(raw) > 0 && kernel.LifeKind(raw[0]) == kernel.LifeKindKIND_CALL {
		return d.call(raw)
	}
	if len(raw) > 1 && kernel.LifeFlag(raw[1])&kernel.LifeFlagFLAG_START != 0 {
		return d.start(raw)
	}
	e, asked, err := d.life(raw)
	if err != nil {
		return nil, err
	}
	d.events = append(d.events[:0], d.note(e)...)
	if asked != nil {
		d.events = append(d.events, event.Event{Time: e.Time, Body: asked})
	}
	d.events = append(d.events, e)
	return d.events, nil
}

// life decodes starts and exits, and also returns the ending image's queries.
func (d *Decoder) life(raw []byte) (_ event.Event, asked *event.Questions, _ error) {
	if len(raw) == 0 {
		return event.Event{}, asked, fmt.Errorf("empty record")
	}
	switch kernel.LifeKind(raw[0]) {
	case kernel.LifeKindKIND_FORK:
		w := &d.forks
		more, err := wire(w, raw, unsafe.Offsetof(w.Stack))
		if err != nil {
			return event.Event{}, asked, fmt.Errorf("fork: %w", err)
		}
		parent := d.processOf(w.Parent)
		return event.Event{Time: int64(w.H.Time), Body: &event.Fork{
			Process: d.processOf(w.H.Task), Parent: parent, PID: w.H.Task.Pid,
			Stack: d.stack(w, parent, more/8), Thread: d.published(w.Context, w.H.Flags),
		}}, asked, nil
	case kernel.LifeKindKIND_EXEC:
		w := &d.execs
		more, err := wire(w, raw, unsafe.Offsetof(w.Data))
		if err != nil {
			return event.Event{}, asked, fmt.Errorf("exec: %w", err)
		}
		e, err := d.exec(w, w.Data[:more])
		return e, d.questions(w.H.Task, w.Asked, w.Asking), err
	case kernel.LifeKindKIND_EXIT:
		var w kernel.LifeExitEvent
		if _, err := wire(&w, raw, unsafe.Sizeof(w)); err != nil {
			return event.Event{}, asked, fmt.Errorf("exit: %w", err)
		}
		code, signal := procfs.ExitOf(uint32(w.Status))
		return event.Event{Time: int64(w.H.Time), Body: &event.Exit{
			Process: d.processOf(w.H.Task),
			Code:    code,
			Signal:  signal,
			Used:    event.Usage{CPU: int64(w.Cpu), RunDelay: int64(w.Delay)},
			NetNS:   d.namespace(w.NetnsCookie, w.NetnsInum),
		}}, d.questions(w.H.Task, w.Asked, w.Asking), nil
	}
	return event.Event{}, asked, fmt.Errorf("unknown kind %d", raw[0])
}

// published returns a thread's span. Zero ids are no garbage.
func (d *Decoder) published(c kernel.LifeThreadContext, flags uint8) *event.ThreadSpan {
	none := c.Trace == [16]uint8{}
	switch {
	case flags&uint8(kernel.LifeFlagFLAG_CONTEXT) == 0, c.Valid == 1 && none && c.Span == [8]uint8{}:
		return nil
	case c.Valid != 1, none, c.Span == [8]uint8{}:
		d.options.Garbled.Add(1)
		return nil
	}
	return &event.ThreadSpan{
		TraceContext: event.TraceContext{Parent: fmt.Sprintf("00-%x-%x-%02x", c.Trace, c.Span, c.TraceFlags&1)},
		Trusted:      flags&uint8(kernel.LifeFlagFLAG_TRUSTED) != 0,
	}
}

func (d *Decoder) stack(w *kernel.LifeForkEvent, parent event.Process, depth int) []event.Frame {
	if d.options.Functions == nil || w.Mounts == 0 || depth == 0 {
		return nil
	}
	depth = min(depth, len(w.Stack))
	if end := slices.Index(w.Stack[:depth], 0); end >= 0 {
		depth = end
	}
	return d.options.Functions.Name(functions.Stack{
		Image:     functions.Image{Process: parent, Execs: w.Execs, Mounts: w.Mounts, Start: w.CodeStart, End: w.CodeEnd},
		PID:       w.Parent.Pid,
		Addresses: w.Stack[:depth],
	})
}

func (d *Decoder) questions(of kernel.Key, count uint32, took uint64) *event.Questions {
	if count == 0 {
		return nil
	}
	return &event.Questions{Process: d.processOf(of), Count: uint64(count), Took: int64(took)}
}

func (d *Decoder) exec(w *kernel.LifeExecEvent, data []byte) (event.Event, error) {
	files, args := int(w.FileLen), int(w.FileLen)+int(w.ArgsLen)
	env := args + int(w.EnvLen)
	if env > len(data) {
		return event.Event{}, fmt.Errorf("exec: %d bytes of text in a record with room for %d", env, len(data))
	}
	flag := func(f kernel.LifeFlag) bool { return w.H.Flags&uint8(f) != 0 }
	im := image.Image{
		File:      unix.ByteSliceToString(data[:files]),
		Args:      procfs.Split(data[files:args]),
		Script:    flag(kernel.LifeFlagFLAG_SCRIPT),
		Truncated: flag(kernel.LifeFlagFLAG_ARGS_CUT | kernel.LifeFlagFLAG_ENV_CUT),
	}
	e := &event.Exec{
		Process:   d.processOf(w.H.Task),
		Parent:    d.processOf(w.Parent),
		PID:       w.H.Task.Pid,
		ParentPID: w.Parent.Pid,
		Started:   int64(w.Started),
		Root:      flag(kernel.LifeFlagFLAG_ROOT),
		NetNS:     d.namespace(w.NetnsCookie, w.NetnsInum),
		Used:      event.Usage{CPU: int64(w.Cpu), RunDelay: int64(w.Delay)},
	}
	p := d.get(e.Process, e.Parent)
	if flag(kernel.LifeFlagFLAG_TRUSTED) {
		im.Env = p.run.variables(data[args:env])
	}
	p.stdin, p.stdout = w.StdinIno, w.StdoutIno
	e.Stdin = event.NoStdin
	if e.Root {
		e.Caller = Callers[kernel.LifeCaller(w.Caller)]
	}
	if w.StdinIno != 0 {
		e.Stdin = fmt.Sprintf("%d:%d", w.H.StdinDev, w.StdinIno)
	}
	known := d.known(e.Process)
	im.Describe(e, d.options.Arguments, known)
	if e.InPath {
		p.environ, p.arguments = im.Env, im.Args[min(1, len(im.Args)):]
	}
	d.mentions(e, im.Args)
	return event.Event{Time: int64(w.H.Time), Body: e}, nil
}

func (d *Decoder) mentions(e *event.Exec, args []string) {
	if up := d.tree.Get(e.Parent); up != nil && up.Depth() > 0 {
		e.Mentions = d.sandboxes.Mentions([]event.Namespace{e.NetNS}, nil, args...)
	}
}

// note returns events before e, such as a plugin's answer at its exit.
func (d *Decoder) note(e event.Event) (before []event.Event) {
	step := d.tree.Apply(e.Body)
	if p := step.Process; p != nil && p.Run == nil && (step.Role == tree.Forked || step.Role == tree.Work) {
		d.tree.Assign(p)
	}
	switch b := e.Body.(type) {
	case *event.Fork:
		d.get(b.Process, b.Parent)
	case *event.Exec:
		p := d.get(b.Process, b.Parent)
		switch step.Role {
		case tree.Root, tree.Delegate:
			d.begin(p, step.Process.Run, b)
		case tree.Image:
			p.run.streams.reopen(p.stdin)
		}
	case *event.Exit:
		p := d.processes[b.Process]
		if p == nil {
			return nil
		}
		if of := p.run.of; of != nil && of.Leader == b.Process {
			if !b.Unseen {
				before = p.run.streams.finish(e.Time, b)
			}
			d.sandboxes.End(of.Call.ContainerID, !of.Vouched(), e.Time)
		}
		d.forget(b.Process)
	}
	return before
}

// begin gives a delegated plugin its caller's redaction, because it repeats the caller's data.
func (d *Decoder) begin(p *process, of *tree.Run, e *event.Exec) {
	r := &run{of: of, leader: e.PID, known: p.run.known}
	if r.known == nil {
		r.known = &redact.Call{}
	}
	p.run = r
	if of.Around == nil && of.Vouched() {
		d.home = of.Home.Key
	}
	d.sandboxes.Begin(of.Call, e.Name, !of.Vouched())
	d.acquaint(p, e)
	r.streams = &streams{from: p.stdin, to: p.stdout, known: r.known}
}

type record struct {
	*kernel.InsideCallEvent
	process event.Process
	data    []byte
	room    []event.Body // reused
}

func (r record) other() *event.Actor {
	return &event.Actor{Process: kernel.ProcessOf(r.Other), PID: r.Other.Pid, Name: comm(r.Comm[:])}
}

// A handler returns false if only the call's duration made it a record.
type handler func(*Decoder, record) ([]event.Body, bool)

// handlers are by class; nil if only its duration can make a call a record.
var handlers = [kernel.InsideClassCLASSES]handler{
	kernel.InsideClassCLASS_OPEN:    (*Decoder).opened,
	kernel.InsideClassCLASS_READ:    (*Decoder).moved,
	kernel.InsideClassCLASS_READV:   (*Decoder).moved,
	kernel.InsideClassCLASS_WRITE:   (*Decoder).moved,
	kernel.InsideClassCLASS_WRITEV:  (*Decoder).moved,
	kernel.InsideClassCLASS_SETNS:   (*Decoder).entered,
	kernel.InsideClassCLASS_UNSHARE: (*Decoder).entered,

	kernel.InsideClassCLASS_SENDTO:     overNetlink((*Decoder).requests),
	kernel.InsideClassCLASS_SENDMSG:    overNetlink((*Decoder).requests),
	kernel.InsideClassCLASS_RECVFROM:   overNetlink((*Decoder).answers),
	kernel.InsideClassCLASS_RECVMSG:    overNetlink((*Decoder).answers),
	kernel.InsideClassCLASS_SETSOCKOPT: overNetlink((*Decoder).legacy),
	kernel.InsideClassCLASS_IOCTL:      overNetlink((*Decoder).legacy),

	kernel.InsideClassCLASS_BPF: (*Decoder).program,

	kernel.InsideClassCLASS_CONNECT: (*Decoder).connect,
	kernel.InsideClassCLASS_REFUSED: (*Decoder).refused,
	kernel.InsideClassCLASS_ACCEPT:  (*Decoder).accepted,
	kernel.InsideClassCLASS_CLOSE:   (*Decoder).closed,
	kernel.InsideClassCLASS_FIRST:   (*Decoder).first4or6,

	kernel.InsideClassCLASS_EXCHANGE: (*Decoder).exchanged,

	kernel.InsideClassCLASS_MISS: (*Decoder).missing,

	kernel.InsideClassCLASS_LOCK_HELD: (*Decoder).held,
	kernel.InsideClassCLASS_FLOCK:     (*Decoder).lock,
	kernel.InsideClassCLASS_FCNTL:     (*Decoder).lock,
	kernel.InsideClassCLASS_MUTEX:     (*Decoder).mutex,
}

func one[T any, B interface {
	*T
	event.Body
}](r record, body B) []event.Body {
	if body == nil {
		return nil
	}
	return append(r.room, body)
}

func (d *Decoder) call(raw []byte) ([]event.Event, error) {
	w := &d.calls
	more, err := wire(w, raw, unsafe.Offsetof(w.Data))
	if err != nil {
		return nil, fmt.Errorf("call: %w", err)
	}
	if int(w.Len) > more {
		return nil, fmt.Errorf("call: %d bytes of data in a record with room for %d", w.Len, more)
	}
	r := record{InsideCallEvent: w, process: d.processOf(w.H.Task), data: w.Data[:w.Len], room: d.room[:0]}
	d.events = d.events[:0]
	for _, b := range d.bodies(r) {
		d.attribute(r.process, b)
		d.redact(r.process, b)
		d.events = append(d.events, event.Event{Time: int64(w.H.Time), Body: b})
	}
	return d.events, nil
}

func (d *Decoder) bodies(r record) []event.Body {
	if int(r.Class) < len(handlers) && handlers[r.Class] != nil {
		if bodies, is := handlers[r.Class](d, r); is {
			return bodies
		}
	}
	if told := textCalls[d.names[r.Nr]]; told != nil {
		return append(r.room, told(d, r, textsOf(r.data)))
	}
	return one(r, d.wait(r))
}

func (d *Decoder) attribute(process event.Process, body event.Body) {
	switch body.(type) {
	case *event.Request, *event.Setting, *event.Enter:
	default:
		return
	}
	switch p := d.tree.Get(process); {
	case p == nil:
	case p.Run == nil:
		d.sandboxes.Attribute(evidence.Doer{Agent: true}, body, d.called(body))
	default:
		d.sandboxes.Attribute(evidence.Doer{Container: p.Run.Call.ContainerID, Hearsay: !p.Run.Vouched()}, body, "")
	}
}
