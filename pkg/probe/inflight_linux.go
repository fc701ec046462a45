package probe

import (
	"cmp"
	"errors"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/belief"
	"github.com/cniscope/cniscope/pkg/probe/decode"
	"github.com/cniscope/cniscope/pkg/probe/image"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/pkg/redact"
)

// running is a process found in /proc.
type running struct {
	pid, parent uint32
	start       uint64 // boot-time nanoseconds, in steps of a tick
	exec        *event.Exec
	caller      kernel.LifeCaller
	denied      bool // we may not look into it
}

// inFlight finds the plugin runs that were under way before the probe was attached,
// with all that descends from them, hands them to the kernel's table, delivers them as
// events and returns how many runs there were, and how many processes could not be
// looked into. What they did so far is unknown; that they are there must not be.
func (p *Probe) inFlight(deliver func(event.Event)) (found, denied int) {
	all, memory := processes(), procfs.NewMemory()
	toMonotonic := bootToMonotonic()
	var follow func(r *running, up, root kernel.Key, caller kernel.LifeCaller, home uint32)
	follow = func(r *running, up, root kernel.Key, caller kernel.LifeCaller, home uint32) {
		self, ok := p.numbers.Key(r.pid)
		if !ok {
			return // it has ended meanwhile
		}
		if root.Tgid == 0 {
			root = self
		}
		entry := kernel.LifeProcess{Self: self, Parent: up, Root: root, Caller: uint8(caller), Home: home}
		if !p.kernel.Insert(&entry) { // the kernel side met the process first: it is known
			return
		}
		if r.exec == nil {
			p.describe(memory, r)
		}
		r.exec.Process, r.exec.Parent = kernel.ProcessOf(self), kernel.ProcessOf(up)
		r.exec.Root = root == self
		if r.exec.Root {
			r.exec.Caller = decode.Callers[caller]
			found++
		}
		r.exec.Started = int64(r.start) - toMonotonic
		deliver(event.Event{Time: r.exec.Started, Body: r.exec})
		for _, child := range all {
			if child.parent == r.pid {
				follow(child, self, root, caller, home)
			}
		}
	}
	// Oldest first: what descends from a plugin is in the table when its turn comes.
	for _, r := range slices.SortedFunc(maps.Values(all), func(a, b *running) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.pid, b.pid))
	}) {
		if !p.describe(memory, r) {
			if r.denied && r.pid != 1 { // init is no plugin, and may be closed to everybody
				denied++
			}
			continue
		}
		up, _ := p.numbers.Key(r.parent) // who is out of sight, or has ended, is nobody
		// It began in the network namespace of who started it, and may be in the pod's by now.
		follow(r, up, kernel.Key{}, r.caller, namespaceOf(r.parent, "net"))
	}
	return found, denied
}

// describe reads what the process runs. It is true for one that is believed to be a plugin
// though nobody is known to have run it, and whose program lies in CNI_PATH.
func (p *Probe) describe(memory *procfs.Memory, r *running) bool {
	if r.exec != nil {
		return r.believed()
	}
	pid := int(r.pid)
	r.exec = &event.Exec{PID: r.pid, ParentPID: r.parent, InFlight: true}
	environ, err := memory.Environment(pid)
	if err != nil {
		r.denied = errors.Is(err, os.ErrPermission) || errors.Is(err, procfs.ErrHangs)
		return false
	}
	var im image.Image
	im.Args, _ = memory.Arguments(pid)
	im.File, err = procfs.Executable(pid)
	if slices.ContainsFunc(environ, func(kv string) bool { return strings.HasPrefix(kv, "CNI_COMMAND=") }) {
		// Environments alone can be read with CAP_PERFMON, too, on some kernels.
		r.denied = errors.Is(err, os.ErrPermission)
		r.caller = p.caller(r.pid)
		if r.caller != kernel.LifeCallerCALLER_NOBODY || belief.Rights(r.pid) != 0 {
			im.Env = environ
		}
	}
	im.Locate()
	im.Describe(r.exec, p.options.Arguments, &redact.Call{})
	if inode := namespaceOf(r.pid, "net"); inode != 0 {
		r.exec.NetNS.Label = strconv.FormatUint(uint64(inode), 10)
	}
	return r.believed()
}

// believed reports whether its program lies in CNI_PATH, and who started it may run plugins.
func (r *running) believed() bool { return r.exec.InPath && r.caller != kernel.LifeCallerCALLER_NOBODY }

// processes lists /proc by pid. A process that ends meanwhile is left out.
func processes() map[uint32]*running {
	all := map[uint32]*running{}
	pids, _ := procfs.All()
	for _, pid := range pids {
		if s, err := procfs.StatOf(pid); err == nil && !s.Zombie() {
			all[uint32(pid)] = &running{pid: uint32(pid), parent: uint32(s.Parent), start: uint64(s.Start)}
		}
	}
	return all
}

// bootToMonotonic is the time the node was suspended: what to take off a boot-time
// instant to have it on the monotonic clock.
func bootToMonotonic() int64 {
	var boot unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) != nil {
		return 0
	}
	return boot.Nano() - clock.Monotonic()
}

// environOf returns what reads a process's environment; where it is over, that of who started
// it, which libcni passes on.
func environOf(memory *procfs.Memory) func(*event.Exec) []string {
	return func(e *event.Exec) []string {
		for _, pid := range [...]uint32{e.PID, e.ParentPID} {
			if env, err := memory.Environment(int(pid)); err == nil && len(env) > 0 {
				return env
			}
		}
		return nil
	}
}
