package kernel

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"

	"github.com/cniscope/cniscope/pkg/event"
)

// lifeHooks are in order of attachment: an exit without its fork is harmless, a fork without its exit would leave a
// process in the table.
var lifeHooks = [...]string{"on_exit", "on_fork", "on_exec"}

// insideHooks are the tracing programs, in order of attachment.
var insideHooks = []struct {
	program, tracepoint string
	// demand: attached only while the gate is open.
	demand bool
	// feature needs the tracepoint, which exists since a version of Linux; empty if nothing works without it.
	feature, since string
}{
	{"on_return", "sys_exit", true, "", ""},
	{"on_enter", "sys_enter", true, "", ""},
	{"on_switch", "sched_switch", true, "", ""},
	{"on_contention_end", "contention_end", true, "waits for the kernel's own locks", "5.19"},
	{"on_contention", "contention_begin", true, "waits for the kernel's own locks", "5.19"},
	{"on_tcp_state", "inet_sock_set_state", false, "first connection, refused connections", "4.16"},
}

// Iterators that report connections from before the gate was opened, and their servers (bpf/before.h).
const (
	lookBack       = "look_back"
	lookForServers = "look_for_servers"
)

// leaveOut removes programs whose tracepoints this kernel lacks, and returns the missing features.
func leaveOut(spec *ebpf.CollectionSpec, types *btf.Spec) (missing []*event.Degraded) {
	said := map[string]bool{}
	for _, h := range insideHooks {
		var known *btf.Typedef
		if h.feature == "" || types.TypeByName("btf_trace_"+h.tracepoint, &known) == nil {
			continue
		}
		delete(spec.Programs, h.program)
		if !said[h.feature] {
			said[h.feature] = true
			missing = append(missing, &event.Degraded{Feature: h.feature, Reason: "needs Linux " + h.since})
		}
	}
	return missing
}

// lacking returns missing optional features.
func lacking(types *btf.Spec) []*event.Degraded {
	if netCookie(types) {
		return nil
	}
	return []*event.Degraded{{
		Feature: "network namespace cookies",
		Reason:  "needs Linux 5.12; a network namespace is told apart by its inode number, which may be used again",
	}}
}

// netCookie reports whether every network namespace has a cookie from the start. Earlier it was an atomic64_t, zero
// until requested.
func netCookie(kernel *btf.Spec) bool {
	var net *btf.Struct
	return kernel.TypeByName("net", &net) == nil && slices.ContainsFunc(net.Members, func(m btf.Member) bool {
		_, number := btf.As[*btf.Int](m.Type)
		return m.Name == "net_cookie" && number
	})
}

// registersAt returns the offset of a task's user registers on its stack; 0 if a helper returns them. Before Linux
// 5.15 they are where task_pt_regs of 6.1 has them (amd64, arm64): at the end.
func registersAt(types *btf.Spec) uint32 {
	if hasHelper(types, "BPF_FUNC_task_pt_regs") {
		return 0
	}
	stack, registers := sizeOf[*btf.Union](types, "thread_union"), sizeOf[*btf.Struct](types, "pt_regs")
	if stack == 0 {
		stack = 16 << 10 // THREAD_SIZE for pages of 4 KiB
	}
	return stack - registers
}

func sizeOf[T btf.Type](types *btf.Spec, name string) uint32 {
	var found T
	if types.TypeByName(name, &found) != nil {
		return 0
	}
	size, err := btf.Sizeof(found)
	if err != nil {
		return 0
	}
	return uint32(size)
}

// attachments are attached programs, which are detached together. A program's section in bpf/ is its target: a BTF
// tracepoint, or the beginning or end of a function.
type attachments []link.Link

func (a *attachments) attach(program *ebpf.Program) error {
	l, err := link.AttachTracing(link.TracingOptions{Program: program})
	if err != nil {
		return fmt.Errorf("attaching %s: %w", program, err)
	}
	*a = append(*a, l)
	return nil
}

func (a *attachments) close() error {
	var errs []error
	for _, l := range *a {
		errs = append(errs, l.Close())
	}
	*a = nil
	return errors.Join(errs...)
}

// detachWithin is the longest wait for detaching functions: for each in turn the kernel waits until no process is in
// it, usually more than 0.1 s.
const detachWithin = 500 * time.Millisecond

// closeWithin is close with a timeout, after which detaching continues; the exit of the process also detaches.
func (a *attachments) closeWithin(patience time.Duration) error {
	if len(*a) == 0 {
		return nil
	}
	all, done := *a, make(chan error, 1)
	*a = nil
	go func() { done <- all.close() }()
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
		return nil
	}
}

// Gate attaches and detaches system-call tracing. One goroutine opens and closes it; any may call IsOpen.
type Gate struct {
	// calls trace system calls, and rest rarer events.
	calls, rest []*ebpf.Program
	// talk traces agents' streams; empty if calls does that also.
	talk []*ebpf.Program
	// before reports earlier connections; nil if the kernel cannot.
	before            *past
	attached, talking attachments
	tried             time.Duration
	// ns until talk was last detached, and since when it is attached; 0 if it is not
	talked, talkingSince atomic.Int64

	closed atomic.Int64 // ns open, until the last close
	since  atomic.Int64 // monotonic ns of the opening; 0 while closed
}

// IsOpen reports whether the on-demand programs are attached.
func (g *Gate) IsOpen() bool { return g.since.Load() != 0 }

// Open attaches, if the gate is closed, and reports whether it did. The kernel patches its code on all CPUs: 0.5 ms
// on an idle machine, up to 48 ms in a busy virtual one. Connections from before are then looked for.
func (g *Gate) Open(now int64) (opened bool, err error) {
	if g.IsOpen() || len(g.calls) == 0 {
		return false, nil
	}
	if err := g.attach(); err != nil {
		_ = g.attached.close()
		return false, err
	}
	g.since.Store(now)
	return true, nil
}

func (g *Gate) attach() error {
	for _, program := range g.calls {
		if err := g.attached.attach(program); err != nil {
			return err
		}
	}
	if err := g.before.look(); err != nil {
		return err
	}
	for _, program := range g.rest {
		if err := g.attached.attach(program); err != nil {
			return err
		}
	}
	return nil
}

// Try opens and closes the gate, so that a refusal is known at the start, and the patched code is in memory when a
// call begins.
func (g *Gate) Try() error {
	began := time.Now()
	err := errors.Join(g.attach(), g.FollowTalk(0, true))
	g.tried = time.Since(began)
	return errors.Join(err, g.attached.close(), g.FollowTalk(0, false))
}

// FollowTalk attaches or detaches talk, which costs every system call of the node time. After a refusal it does not
// try again.
func (g *Gate) FollowTalk(now int64, on bool) error {
	if on == (len(g.talking) > 0) || len(g.talk) == 0 {
		return nil
	}
	if !on {
		g.talked.Add(now - g.talkingSince.Swap(0))
		return g.talking.close()
	}
	for _, program := range g.talk {
		if err := g.talking.attach(program); err != nil {
			g.talk = nil
			return errors.Join(err, g.talking.close())
		}
	}
	g.talkingSince.Store(now)
	return nil
}

// Talked returns how long talk was attached.
func (g *Gate) Talked(now int64) time.Duration {
	d := g.talked.Load()
	if since := g.talkingSince.Load(); since != 0 {
		d += now - since
	}
	return time.Duration(d)
}

func (g *Gate) put() (err error) {
	err = errors.Join(g.attached.close(), g.talking.close(), g.before.close())
	g.calls, g.rest, g.talk, g.before = nil, nil, nil, nil
	return err
}

// Tried returns the duration of Try; 0 without it.
func (g *Gate) Tried() time.Duration { return g.tried }

// Close detaches. Attaching again soon afterwards takes 13 ms.
func (g *Gate) Close(now int64) error {
	if since := g.since.Swap(0); since != 0 {
		g.closed.Add(now - since)
	}
	return g.attached.close()
}

// Attached returns how long the gate was open.
func (g *Gate) Attached(now int64) time.Duration {
	d := g.closed.Load()
	if since := g.since.Load(); since != 0 {
		d += now - since
	}
	return time.Duration(d)
}
