package probe

import (
	"fmt"
	"hash/maphash"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/evidence"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/probe/symbols"
	"github.com/cniscope/cniscope/pkg/redact"
)

// interior turns the kernel side's records of what happens inside processes into events.
// It keeps, for each process, what later records refer to; all of it goes with the
// process.
type interior struct {
	// initial: we are in the initial PID namespace, whose numbers the kernel keeps.
	initial   bool
	processes map[event.Process]*inhabitant
	byNumber  map[uint32]event.Process // by tgid, as the initial namespace counts
	// holders are those of the locks that threads wait for, by thread.
	holders map[uint32]*event.Actor
	// spaces are the cookies of network namespaces by inode number, as last seen.
	spaces map[uint32]uint64
	names  map[uint16]string // of system calls
	// sandboxes are those with an open call, by container id.
	sandboxes evidence.Sandboxes
	// nobody is what is known of the calls of processes that work for none, or for several.
	nobody  redact.Call
	seed    maphash.Seed
	symbols *symbols.Table
	// environ is what a plugin was told by its environment; nil where nobody can ask.
	environ func(*event.Exec) []string
}

// inhabitant is what is known of one process.
type inhabitant struct {
	number uint32
	// leader is the process of the plugin it belongs to; streams are that one's own.
	leader  event.Process
	stdin   string
	streams *streams
	// known is what must not be repeated of what the plugin was told.
	known *redact.Call
	// environ and arguments are what its last image was told.
	environ, arguments []string
	pipes              pipes
	// container is the one its plugin is called for; depth is 0 in a plugin's tree, 1 in that
	// of a server that plugins call, 2 of one that such a server calls.
	container string
	depth     int
	// hearsay: the runtime does not stand for its plugin.
	hearsay bool
	// files are the network namespaces it has open, by descriptor.
	files map[uint32]uint32
	// links are the names of interfaces it was told, by namespace and index.
	links map[string]string
	// addresses are the states of IPv6 addresses it was told, by interface.
	addresses map[string]event.AddressState
	// home is the network namespace that a plugin was started in; touched are the
	// interfaces that its tree changed.
	home    string
	touched map[string]bool
}

// Bounds of what is kept for one process, and for all.
const (
	maxFiles     = 64
	maxAddresses = 64
	maxLinks     = 64
	maxTouched   = 64
	maxSpaces    = 4096
)

func newInterior(initial bool, symbols *symbols.Table) *interior {
	return &interior{
		initial:   initial,
		processes: map[event.Process]*inhabitant{},
		byNumber:  map[uint32]event.Process{},
		holders:   map[uint32]*event.Actor{},
		spaces:    map[uint32]uint64{},
		names:     kernel.SyscallNames(),
		sandboxes: evidence.Sandboxes{},
		seed:      maphash.MakeSeed(),
		symbols:   symbols,
	}
}

// note follows the processes that are tracked. What it returns happened before e: what a
// plugin read and wrote is known when it is over.
func (in *interior) note(e event.Event) (before []event.Event) {
	switch b := e.Body.(type) {
	case *event.Fork:
		in.add(b.Process, b.Parent)
	case *event.Exec:
		p := in.processes[b.Process]
		if p == nil {
			p = in.add(b.Process, b.Parent)
		}
		in.space(b.NetNS)
		switch leads := p.leader == b.Process; {
		case p.leader == "" && b.InPath && b.Call != nil, p.leader != "" && b.Delegates(leads, in.stdinOf(p.leader)):
			if b.Root {
				p.hearsay = !b.Caller.Anchored() && b.Caller != event.CallerAgent
			}
			in.sandboxes.Begin(b.Call, p.hearsay)
			p.streams = &streams{from: p.pipes.in, to: p.pipes.out, known: in.acquaint(p, b)}
			p.leader, p.stdin = b.Process, b.Stdin
			p.container, p.depth, p.home = b.Call.ContainerID, 0, b.NetNS.Key
		case leads: // another image of the same run
			p.stdin = b.Stdin
			p.streams.reopen(p.pipes.in)
		}
	case *event.Exit:
		p := in.processes[b.Process]
		if p == nil {
			return nil
		}
		if p.streams != nil && !b.Unseen {
			before = p.streams.finish(e.Time, b.Process)
		}
		if p.leader == b.Process {
			in.sandboxes.End(p.container, p.hearsay, e.Time)
		}
		in.remove(b.Process)
	}
	return before
}

func (in *interior) add(process, parent event.Process) *inhabitant {
	p := &inhabitant{}
	number, _, _ := strings.Cut(string(process), "@")
	if n, err := strconv.ParseUint(number, 10, 32); err == nil {
		p.number = uint32(n)
		in.byNumber[p.number] = process
	}
	if up := in.processes[parent]; up != nil {
		p.leader, p.container, p.depth, p.hearsay, p.known = up.leader, up.container, up.depth, up.hearsay, up.known
	}
	in.processes[process] = p
	return p
}

// opens takes the pipes that a process's next image reads and writes.
func (in *interior) opens(process, parent event.Process, p pipes) {
	if in.processes[process] == nil {
		in.add(process, parent)
	}
	in.processes[process].pipes = p
}

// keep drops what is known of processes that nobody follows any more.
func (in *interior) keep(live map[event.Process]*tracked) {
	for process := range in.processes {
		if live[process] == nil {
			in.remove(process)
		}
	}
}

func (in *interior) remove(process event.Process) {
	if p := in.processes[process]; p != nil && in.byNumber[p.number] == process {
		delete(in.byNumber, p.number)
	}
	delete(in.processes, process)
}

func (in *interior) stdinOf(leader event.Process) string {
	if p := in.processes[leader]; p != nil {
		return p.stdin
	}
	return ""
}

// space remembers which namespace an inode number stands for.
func (in *interior) space(ns event.Namespace) {
	inode, err1 := strconv.ParseUint(ns.Label, 10, 32)
	cookie, err2 := strconv.ParseUint(ns.Key, 10, 64)
	if err1 != nil || err2 != nil || ns.Key == ns.Label {
		return
	}
	if len(in.spaces) >= maxSpaces {
		clear(in.spaces)
	}
	in.spaces[uint32(inode)] = cookie
}

// namespaceOf is the namespace behind an inode number.
func (in *interior) namespaceOf(inode uint32) event.Namespace {
	return namespace(in.spaces[inode], inode)
}

// record is one record of the kernel side, checked.
type record struct {
	*kernel.InsideCallEvent
	process event.Process
	data    []byte
}

// forgetWaits drops what belongs to waits that nobody will tell the end of.
func (in *interior) forgetWaits() { clear(in.holders) }

// decode returns the events in one record; none is no error.
func (in *interior) decode(raw []byte) ([]event.Event, error) {
	var w kernel.InsideCallEvent
	if err := wire(&w, raw, unsafe.Offsetof(w.Data)); err != nil {
		return nil, fmt.Errorf("call: %w", err)
	}
	if int(w.Len) > len(w.Data) {
		return nil, fmt.Errorf("call: %d bytes of data in a record with room for %d", w.Len, len(w.Data))
	}
	r := record{InsideCallEvent: &w, process: kernel.ProcessOf(w.H.Task), data: w.Data[:w.Len]}
	in.space(namespace(w.NetnsCookie, w.NetnsInum))
	bodies := in.bodies(r)
	events := make([]event.Event, 0, len(bodies)+1)
	for _, b := range bodies {
		in.attribute(r.process, b)
		in.redact(r.process, b)
		events = append(events, event.Event{Time: int64(w.H.Time), Body: b})
	}
	return events, nil
}

// bodies says what a record means. A system call that is of interest in itself has more
// in its record than one that only lasted.
func (in *interior) bodies(r record) []event.Body {
	switch class := kernel.InsideClass(r.Class); {
	case class == kernel.InsideClassCLASS_LOCK_HELD:
		in.holders[r.Thread] = in.holder(r.Other.Tgid)
		return nil
	case class == kernel.InsideClassCLASS_FLOCK, class == kernel.InsideClassCLASS_FCNTL:
		return one(in.lock(r))
	case class == kernel.InsideClassCLASS_MUTEX:
		return one(in.mutex(r))
	case class == kernel.InsideClassCLASS_OPEN && r.Object != 0:
		in.opened(r)
		return nil
	case class == kernel.InsideClassCLASS_SETNS && r.NetnsInum != 0, class == kernel.InsideClassCLASS_UNSHARE && r.NetnsInum != 0:
		return one(&event.Enter{Process: r.process, Thread: r.Thread, NetNS: namespace(r.NetnsCookie, r.NetnsInum)})
	case class >= kernel.InsideClassCLASS_READ && class <= kernel.InsideClassCLASS_WRITEV && r.Object != 0:
		if r.Protocol != 0 {
			return one(setting(r))
		}
		return in.stream(r)
	case class >= kernel.InsideClassCLASS_SENDTO && class <= kernel.InsideClassCLASS_RECVMSG && r.NetnsInum != 0:
		return in.netlink(r)
	case class == kernel.InsideClassCLASS_SETSOCKOPT && r.NetnsInum != 0, class == kernel.InsideClassCLASS_IOCTL && r.NetnsInum != 0:
		return one(in.legacy(r))
	}
	if body, is := in.connection(r); is {
		return body
	}
	return one(in.wait(r))
}

// one is for what is at most one event.
func one[T any, B interface {
	*T
	event.Body
}](body B) []event.Body {
	if body == nil {
		return nil
	}
	return []event.Body{body}
}

// attribute fills in for which sandbox a process does something, if it says so.
func (in *interior) attribute(process event.Process, body event.Body) {
	if p := in.processes[process]; p != nil {
		in.sandboxes.Attribute(evidence.Doer{Container: p.container, Hearsay: p.hearsay, Agent: p.depth > 0}, body)
	}
}

// wait is any other system call that lasted.
func (in *interior) wait(r record) *event.Wait {
	w := &event.Wait{Process: r.process, Thread: r.Thread, Start: int64(r.Start), Kind: event.WaitCall, Name: in.names[r.Nr]}
	if w.Name == "" {
		w.Name = fmt.Sprintf("system call %d", r.Nr)
	}
	switch kernel.InsideClass(r.Class) {
	case kernel.InsideClassCLASS_SLEEP:
		w.Kind = event.WaitSleep
	case kernel.InsideClassCLASS_FUTEX:
		w.Kind = event.WaitPoll
		if r.Ret == -int64(unix.ETIMEDOUT) {
			w.Kind = event.WaitSleep
		}
	case kernel.InsideClassCLASS_POLL:
		w.Kind = event.WaitPoll
		if r.Ret == 0 {
			w.Kind = event.WaitSleep
		}
	// Whoever reads waits for somebody to write; of files on a disk that is not so, but
	// those are read in no time.
	case kernel.InsideClassCLASS_WAIT, kernel.InsideClassCLASS_READ, kernel.InsideClassCLASS_READV, kernel.InsideClassCLASS_RECVFROM,
		kernel.InsideClassCLASS_RECVMSG, kernel.InsideClassCLASS_ACCEPT:
		w.Kind = event.WaitPoll
	}
	return w
}

// errno names the error a system call returned; empty if it returned none.
func errno(ret int64) string {
	if ret >= 0 || ret < -4095 { // MAX_ERRNO (include/linux/err.h)
		return ""
	}
	if name := unix.ErrnoName(unix.Errno(-ret)); name != "" {
		return name
	}
	if ret <= -512 && ret >= -516 { // ERESTARTSYS and its like (include/linux/errno.h)
		return "EINTR"
	}
	return fmt.Sprintf("errno %d", -ret)
}
