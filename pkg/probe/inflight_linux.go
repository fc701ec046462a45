package probe

import (
	"cmp"
	"errors"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/decode"
	"github.com/cniscope/cniscope/pkg/probe/image"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/probe/trust"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/pkg/redact"
)

type running struct {
	pid, parent uint32
	name        string // the kernel's name, of a script its own
	start       uint64 // boot-time ns, rounded to a tick
	exec        *event.Exec
	args        []string // unfiltered
	caller      kernel.LifeCaller
	denied      bool
}

func (p *Probe) inFlight(deliver deliver) (found, denied int) {
	c := p.count(deliver)
	for _, r := range slices.SortedFunc(maps.Values(c.all), func(a, b *running) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.pid, b.pid))
	}) {
		if !p.describe(c.memory, r) {
			if r.denied && r.pid != 1 { // init is often unreadable
				denied++
			}
			continue
		}
		up, _ := p.numbers.Key(r.parent) // zero if invisible or gone
		// It began in its parent's network namespace, and may have left it.
		if c.follow(r, kernel.LifeProcess{Self: up, Caller: uint8(r.caller), Home: trust.Namespace(r.parent, "net")}) {
			found++
		}
	}
	return found, denied
}

// servedBefore adds what an agent started since then (boot-time ns).
func (c *census) servedBefore(agent kernel.LifeProcess, since uint64) {
	for _, r := range c.children[agent.Self.Pid] {
		if r.start+uint64(procfs.Tick) > since {
			c.probe.describe(c.memory, r)
			r.exec.InFlight = false
			c.follow(r, agent)
		}
	}
}

type deliver func(e *event.Exec, args []string)

type census struct {
	probe       *Probe
	all         map[uint32]*running
	children    map[uint32][]*running
	memory      *procfs.Memory
	toMonotonic int64
	deliver     deliver
}

func (p *Probe) count(deliver deliver) *census {
	p.numbers.renew()
	c := &census{probe: p, all: processes(), children: map[uint32][]*running{}, memory: procfs.NewMemory(), toMonotonic: clock.Suspended(), deliver: deliver}
	for _, r := range c.all {
		c.children[r.parent] = append(c.children[r.parent], r)
	}
	return c
}

func (c *census) follow(r *running, up kernel.LifeProcess) (root bool) {
	self, ok := c.probe.numbers.Key(r.pid)
	if !ok {
		return false
	}
	entry := kernel.LifeProcess{
		Self: self, Parent: up.Self, Root: up.Root, Home: up.Home, InIno: up.InIno, OutIno: up.OutIno, Agent: up.Agent, OnNode: up.OnNode,
		Session: up.Session, Mounts: up.Mounts, Caller: up.Caller, Since: up.Since,
	}
	if root = up.Root.Tgid == 0; root {
		entry.Root = self
	}
	if !c.probe.kernel.Insert(&entry) {
		return false
	}
	if r.exec == nil {
		c.probe.describe(c.memory, r)
		r.exec.InFlight = up.Agent == 0
	}
	r.exec.Process, r.exec.Parent, r.exec.Root = kernel.ProcessOf(self), kernel.ProcessOf(up.Self), root
	if root {
		r.exec.Caller = decode.Callers[kernel.LifeCaller(entry.Caller)]
	}
	r.exec.Started = int64(r.start) - c.toMonotonic
	c.deliver(r.exec, r.args)
	for _, child := range c.children[r.pid] {
		c.follow(child, entry)
	}
	return root
}

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
	r.args = im.Args
	im.File, err = procfs.Executable(pid)
	if slices.ContainsFunc(environ, func(kv string) bool { return strings.HasPrefix(kv, "CNI_COMMAND=") }) {
		// CAP_PERFMON may suffice for environments only
		r.denied = errors.Is(err, os.ErrPermission)
		r.caller = p.caller(r.pid)
		if r.caller != kernel.LifeCallerCALLER_NOBODY || trust.Rights(r.pid) != 0 {
			im.Env = environ
		}
	}
	im.Locate()
	im.FindScript(r.name)
	im.Describe(r.exec, p.options.Arguments, &redact.Call{})
	if inode := trust.Namespace(r.pid, "net"); inode != 0 {
		r.exec.NetNS.Label = strconv.FormatUint(uint64(inode), 10)
	}
	return r.believed()
}

func (r *running) believed() bool { return r.exec.InPath && r.caller != kernel.LifeCallerCALLER_NOBODY }

func processes() map[uint32]*running {
	all := map[uint32]*running{}
	pids, _ := procfs.All()
	for _, pid := range pids {
		if s, err := procfs.StatOf(pid); err == nil && !s.Zombie() {
			all[uint32(pid)] = &running{pid: uint32(pid), parent: uint32(s.Parent), name: s.Name, start: uint64(s.Start)}
		}
	}
	return all
}

// environOf returns a plugin's environment, or its parent's, which libcni passes on.
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

// caller is caller_of in bpf/believe.h by /proc, without agents.
func (p *Probe) caller(pid uint32) kernel.LifeCaller {
	caller := p.node.Caller(pid)
	for c, name := range decode.Callers {
		if name == caller {
			return c
		}
	}
	return kernel.LifeCallerCALLER_NOBODY
}
