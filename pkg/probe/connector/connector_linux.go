package connector

import (
	"context"
	"errors"
	"os"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/procfs"
)

const (
	heartbeatWithin = time.Second
	silence         = 10 * time.Second
)

// Connector has two sockets: all gets every message; alarm only execs, and wakes the reader.
type Connector struct {
	options Options
	looker  *looker
	all     *socket
	alarm   *socket
	unwatch func()

	mu    sync.Mutex
	stats Stats
}

// Open subscribes. The calling goroutine keeps its prioritized thread, and must call Run. It needs CAP_NET_ADMIN and
// the initial user, PID and network namespaces, else returns an UnsupportedError; CAP_SYS_PTRACE for other users'
// processes.
func Open(o Options) (_ *Connector, err error) {
	c := &Connector{options: o, looker: newLooker(o), unwatch: func() {}}
	defer func() {
		if err != nil {
			_ = c.Close()
		}
	}()
	if pids, err := procfs.OwnNamespace("pid"); err != nil || pids != procfs.InitialPID {
		return nil, &UnsupportedError{Need: "the node's PID namespace", Remedy: "run it on the node itself, or in a pod with hostPID", Err: err}
	}
	if users, err := procfs.OwnNamespace("user"); err != nil || users != procfs.InitialUser {
		return nil, &UnsupportedError{Need: "the node's user namespace", Remedy: "run it on the node itself, or in a container without a user namespace of its own", Err: err}
	}
	// The kernel serves the later socket first, so after an alarm the message is in all.
	if c.alarm, err = newSocket(); err == nil {
		err = c.alarm.onlyPrograms()
	}
	if err == nil {
		c.all, err = newSocket()
	}
	if err != nil {
		return nil, explain(err)
	}
	if err := c.listen(); err != nil {
		return nil, explain(err)
	}
	hurry()
	if o.Anchors != nil {
		c.unwatch = o.Anchors.Watch(c.looker.setAnchors)
	}
	return c, c.prove()
}

// hurry prioritizes Run (CAP_SYS_NICE): on a busy node a fifth of the commands would exit unread.
func hurry() {
	runtime.LockOSThread()
	realtime := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1, Flags: unix.SCHED_FLAG_RESET_ON_FORK}
	if unix.SchedSetAttr(0, &realtime, 0) != nil {
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, -20)
	}
}

func explain(err error) error {
	switch {
	case errors.Is(err, unix.EPERM):
		return &UnsupportedError{Need: "the permission to hear of processes", Remedy: "run as root or with CAP_NET_ADMIN", Err: err}
	case errors.Is(err, unix.ECONNREFUSED):
		return &UnsupportedError{Need: "the node's network namespace", Remedy: "run it on the node itself, or in a pod with hostNetwork", Err: err}
	case errors.Is(err, unix.EPROTONOSUPPORT):
		return &UnsupportedError{Need: "a kernel with process events", Remedy: "use one built with CONFIG_CONNECTOR and CONFIG_PROC_EVENTS", Err: err}
	}
	return &UnsupportedError{Need: "a netlink socket", Remedy: "see docs/kernels.md", Err: err}
}

// listen subscribes each socket, as Linux 6.6 and later require.
func (c *Connector) listen() error {
	for _, s := range [...]*socket{c.all, c.alarm} {
		if err := s.control(mcastListen); err != nil {
			return err
		}
		s.listens++
	}
	return nil
}

func (c *Connector) prove() error {
	if err := heartbeat(); err != nil {
		return explain(err)
	}
	for until := time.Now().Add(heartbeatWithin); time.Now().Before(until); {
		n, err := c.all.read(50 * time.Millisecond)
		if err != nil && !errors.Is(err, errLost) {
			return explain(err)
		}
		for i := range n {
			if m, ok := c.all.message(i); ok && m.what != 0 {
				return nil
			}
		}
	}
	return &UnsupportedError{
		Need:   "a kernel that tells of processes: it says nothing and gives no error",
		Remedy: "use one built with CONFIG_PROC_EVENTS, and run in the node's own PID, user and network namespaces",
	}
}

// heartbeat sets the thread's own name, which the kernel reports.
func heartbeat() error {
	var name [16]byte // TASK_COMM_LEN
	at := uintptr(unsafe.Pointer(&name[0]))
	if err := unix.Prctl(unix.PR_GET_NAME, at, 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl", err)
	}
	return os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_NAME, at, 0, 0, 0))
}

// Close unsubscribes: before Linux 6.6 the kernel does not notice the exit.
func (c *Connector) Close() error {
	c.unwatch()
	var errs []error
	for _, s := range [...]*socket{c.all, c.alarm} {
		if s == nil {
			continue
		}
		for ; s.listens > 0; s.listens-- {
			errs = append(errs, s.control(mcastIgnore))
		}
		errs = append(errs, s.close())
	}
	return errors.Join(errs...)
}

// Stats is safe for concurrent use.
func (c *Connector) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// Run delivers present processes, then events until ctx ends.
func (c *Connector) Run(ctx context.Context, sink event.Sink) error {
	r := newReader(c, sink)
	r.begin()
	for now := clock.Monotonic(); ctx.Err() == nil; now = clock.Monotonic() {
		woken, err := c.alarm.read(r.patience(now))
		if err != nil && !errors.Is(err, errLost) {
			return err
		}
		before := r.programs
		if err := r.drain(0); err != nil {
			return err
		}
		if r.storm && r.hastens(now) {
			if err := errors.Join(r.calm(), r.drain(0)); err != nil {
				return err
			}
		}
		if woken > 0 && !r.storm && r.programs == before { // its message is still on its way
			if err := r.drain(time.Millisecond); err != nil {
				return err
			}
		}
	}
	return r.end()
}
