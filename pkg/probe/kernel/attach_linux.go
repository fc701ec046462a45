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

// lifeHooks are in the order they are attached: an exit without its fork is harmless, a
// fork without its exit would leave a process in the table.
var lifeHooks = [...]string{"on_exit", "on_fork", "on_exec"}

// insideHooks are the programs that look into processes, in the order they are attached.
var insideHooks = []struct {
	program, tracepoint string
	// demand: it is attached only while the gate is open.
	demand bool
	// feature is what a kernel without the tracepoint cannot do, since when it can;
	// empty where nothing can be done without it.
	feature, since string
}{
	{"on_return", "sys_exit", true, "", ""},
	{"on_enter", "sys_enter", true, "", ""},
	{"on_switch", "sched_switch", true, "", ""},
	{"on_contention_end", "contention_end", true, "waits for the kernel's own locks", "5.19"},
	{"on_contention", "contention_begin", true, "waits for the kernel's own locks", "5.19"},
	{"on_tcp_state", "inet_sock_set_state", false, "first connection, refused connections", "4.16"},
}

// Programs that tell what plugins had connected before the gate was opened, and who answers there (bpf/before.h).
const (
	lookBack       = "look_back"
	lookForServers = "look_for_servers"
)

// leaveOut takes from an object the programs whose tracepoints this kernel does not have, and
// says what is missing then.
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

// lacking names what this kernel does not have that everything else goes on without.
func lacking(types *btf.Spec) []*event.Degraded {
	if netCookie(types) {
		return nil
	}
	return []*event.Degraded{{
		Feature: "network namespace cookies",
		Reason:  "needs Linux 5.12; a network namespace is told apart by its inode number, which may be used again",
	}}
}

// netCookie reports whether every network namespace has its cookie from the start. Before, it
// was an atomic64_t, zero until somebody asked for it.
func netCookie(kernel *btf.Spec) bool {
	var net *btf.Struct
	return kernel.TypeByName("net", &net) == nil && slices.ContainsFunc(net.Members, func(m btf.Member) bool {
		_, number := btf.As[*btf.Int](m.Type)
		return m.Name == "net_cookie" && number
	})
}

// registersAt is where on its stack a task's registers are that it came into the kernel with, in bytes; 0 where the kernel
// tells BPF programs by itself. Before Linux 5.15 it is as on 6.1 (task_pt_regs of amd64 and arm64): at the end.
func registersAt(types *btf.Spec) uint32 {
	if hasHelper(types, "BPF_FUNC_task_pt_regs") {
		return 0
	}
	stack, registers := sizeOf[*btf.Union](types, "thread_union"), sizeOf[*btf.Struct](types, "pt_regs")
	if stack == 0 {
		stack = 16 << 10 // THREAD_SIZE, where pages have 4 KiB
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

// attachments are programs that are attached, and detached together. Where a program belongs
// is part of it (its section in bpf/): a BTF tracepoint, or the beginning or end of one of the
// kernel's functions, are attached in the same way.
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

// detachWithin is how long whoever ends waits until functions are detached: for each the kernel waits for all that
// may be in it, mostly for more than 0.1 s, and does so for one after the other.
const detachWithin = 500 * time.Millisecond

// closeWithin is close, which goes on by itself when that time is over; when the process ends the kernel does it.
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

// Gate attaches what looks into every system call, and detaches it. One goroutine opens and
// closes it; any may ask whether it is open.
type Gate struct {
	// calls look into system calls, and rest into what is rarer.
	calls, rest []*ebpf.Program
	// talk looks into what agents say to each other; without calls, which look into that, too.
	talk []*ebpf.Program
	// before tells of what was connected before; nil where the kernel cannot.
	before            *past
	attached, talking attachments
	tried             time.Duration
	// ns that what agents say was looked into, until that last ended, and since when it is; 0 while it is not.
	talked, talkingSince atomic.Int64

	closed atomic.Int64 // ns it was open, until it was last closed
	since  atomic.Int64 // when it was opened, in monotonic ns; 0 while it is closed
}

// IsOpen reports whether what is attached on demand is: by system calls all that looks into them, by functions waits.
func (g *Gate) IsOpen() bool { return g.since.Load() != 0 }

// Open attaches, if that has not been done, and reports whether it did. The kernel changes its own code for that,
// on all CPUs: it takes 0.5 ms on an idle machine and was seen to take 48 ms in a busy virtual one. What
// plugins connected meanwhile is looked for as soon as system calls are looked into.
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

// Try opens the gate and closes it: where that is refused it is known from the beginning, and the
// kernel's code that is changed lies in memory when a call begins.
func (g *Gate) Try() error {
	began := time.Now()
	err := errors.Join(g.attach(), g.FollowTalk(0, true))
	g.tried = time.Since(began)
	return errors.Join(err, g.attached.close(), g.FollowTalk(0, false))
}

// FollowTalk has what agents say to each other looked into, or not any more, where that is attached by itself: every
// system call of the node costs more meanwhile. A kernel that refused it once is not asked again.
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

// Talked is how long that was so in all.
func (g *Gate) Talked(now int64) time.Duration {
	d := g.talked.Load()
	if since := g.talkingSince.Load(); since != 0 {
		d += now - since
	}
	return time.Duration(d)
}

// put puts away what the gate is made of.
func (g *Gate) put() (err error) {
	err = errors.Join(g.attached.close(), g.talking.close(), g.before.close())
	g.calls, g.rest, g.talk, g.before = nil, nil, nil, nil
	return err
}

// Tried is how long it took to open when that was tried; 0 if it was not.
func (g *Gate) Tried() time.Duration { return g.tried }

// Close detaches, if anything is attached. To attach again soon after takes 13 ms.
func (g *Gate) Close(now int64) error {
	if since := g.since.Swap(0); since != 0 {
		g.closed.Add(now - since)
	}
	return g.attached.close()
}

// Attached is how long the gate was open in all.
func (g *Gate) Attached(now int64) time.Duration {
	d := g.closed.Load()
	if since := g.since.Load(); since != 0 {
		d += now - since
	}
	return time.Duration(d)
}
