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

// The exit comes first: a fork without its exit would leave a process in the table.
var lifeHooks = []string{"on_exit", "on_fork", "on_exec"}

// insideHooks are in order of attachment.
var insideHooks = []struct {
	program, tracepoint string
	demand              bool
	// missing feature without the tracepoint, and since when Linux has it; empty: required
	feature, since string
}{
	{"on_return", "sys_exit", true, "", ""},
	{"on_enter", "sys_enter", true, "", ""},
	{"on_switch", "sched_switch", true, "", ""},
	{"on_contention_end", "contention_end", true, "waits for the kernel's own locks", "5.19"},
	{"on_contention", "contention_begin", true, "waits for the kernel's own locks", "5.19"},
	{"on_tcp_state", "inet_sock_set_state", false, "first connection, refused connections", "4.16"},
}

const missHook = "on_miss"

// Iterators over earlier connections, and their servers (bpf/before.h).
const (
	lookBack       = "look_back"
	lookForServers = "look_for_servers"
)

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

func lacking(types *btf.Spec) []*event.Degraded {
	if netCookie(types) {
		return nil
	}
	return []*event.Degraded{{
		Feature: "network namespace cookies",
		Reason:  "needs Linux 5.12; a network namespace is identified by its inode number, which the kernel may reuse",
	}}
}

// netCookie reports whether namespaces always have a cookie, not an atomic64_t that is zero until requested.
func netCookie(kernel *btf.Spec) bool {
	var net *btf.Struct
	return kernel.TypeByName("net", &net) == nil && slices.ContainsFunc(net.Members, func(m btf.Member) bool {
		_, number := btf.As[*btf.Int](m.Type)
		return m.Name == "net_cookie" && number
	})
}

// registersAt is the offset of user registers on the stack (task_pt_regs of 6.1: amd64, arm64); 0 if a helper returns
// them, since 5.15.
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

type attachments []link.Link

func (a *attachments) attach(programs ...*ebpf.Program) error {
	for _, program := range programs {
		l, err := link.AttachTracing(link.TracingOptions{Program: program})
		if err != nil {
			return fmt.Errorf("attaching %s: %w", program, err)
		}
		*a = append(*a, l)
	}
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

// detachWithin bounds detaching: for each function the kernel waits until no process is in it, usually 0.1 s or more.
const detachWithin = 500 * time.Millisecond

// closeWithin continues after the timeout.
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

// Gate attaches and detaches system-call tracing, from one goroutine.
type Gate struct {
	Calls Demand
	// rest is attached after Calls and the look for earlier connections.
	rest []*ebpf.Program
	// Talk is empty if Calls traces agents' streams.
	Talk, misses Demand
	missed       *ebpf.Map // the tally of misses
	before       *past
	// Tried is the duration of Try, or 0.
	Tried time.Duration
}

// IsOpen is safe for concurrent use.
func (g *Gate) IsOpen() bool { return g.Calls.since.Load() != 0 }

// Open attaches: 0.5 ms idle, up to 48 ms in a busy virtual machine. Then it looks for earlier connections.
func (g *Gate) Open(now int64) (opened bool, err error) {
	if g.IsOpen() || len(g.Calls.programs) == 0 {
		return false, nil
	}
	err = g.Calls.Follow(now, true)
	return err == nil, err
}

func (g *Gate) attachRest() error {
	if err := g.before.look(); err != nil {
		return err
	}
	return g.Calls.attached.attach(g.rest...)
}

// Try finds a refusal early, and loads the code.
func (g *Gate) Try() error {
	began := time.Now()
	err := errors.Join(g.Calls.Follow(0, true), g.Talk.Follow(0, true), g.FollowMisses(0, true))
	g.Tried = time.Since(began)
	return errors.Join(err, g.Calls.Follow(0, false), g.Talk.Follow(0, false), g.FollowMisses(0, false))
}

// Demand is attached only when needed: it slows all system calls of the node.
type Demand struct {
	programs []*ebpf.Program
	then     func() error // after attaching; may be nil
	attached attachments
	// ns until the last detaching; since is 0 while detached
	total, since atomic.Int64
}

// Follow attaches or detaches. Reattaching soon costs 13 ms.
func (d *Demand) Follow(now int64, on bool) error {
	if on == (len(d.attached) > 0) || len(d.programs) == 0 {
		return nil
	}
	if !on {
		d.total.Add(now - d.since.Swap(0))
		return d.attached.close()
	}
	err := d.attached.attach(d.programs...)
	if err == nil && d.then != nil {
		err = d.then()
	}
	if err != nil {
		d.programs = nil
		return errors.Join(err, d.attached.close())
	}
	d.since.Store(now)
	return nil
}

// Lasted returns the time attached until now.
func (d *Demand) Lasted(now int64) time.Duration {
	all := d.total.Load()
	if since := d.since.Load(); since != 0 {
		all += now - since
	}
	return time.Duration(all)
}

// FollowMisses switches tracing of polled files; off empties the tally.
func (g *Gate) FollowMisses(now int64, on bool) error {
	if on || len(g.misses.attached) == 0 {
		return g.misses.Follow(now, on)
	}
	err := g.misses.Follow(now, false)
	if g.missed != nil {
		key := make([]byte, g.missed.KeySize())
		for range g.missed.MaxEntries() {
			if g.missed.NextKey(nil, key) != nil || g.missed.Delete(key) != nil {
				break
			}
		}
	}
	return err
}

func (g *Gate) put() (err error) {
	err = errors.Join(g.Calls.attached.close(), g.Talk.attached.close(), g.misses.attached.close(), g.before.close())
	g.Calls.programs, g.rest, g.Talk.programs, g.misses.programs, g.before = nil, nil, nil, nil, nil
	return err
}
