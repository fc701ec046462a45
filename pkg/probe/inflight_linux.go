package probe

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/redact"
)

// ticksPerSecond is USER_HZ, the unit of /proc/PID/stat on every architecture that
// Linux is built for here (include/asm-generic/param.h).
const ticksPerSecond = 100

// running is a process found in /proc.
type running struct {
	pid, parent uint32
	start       uint64 // boot-time nanoseconds, in steps of a tick
	exec        *event.Exec
	caller      bpfCaller
	denied      bool // we may not look into it
}

// inFlight finds the plugin runs that were under way before the probe was attached,
// with all that descends from them, hands them to the kernel's table, delivers them as
// events and returns how many runs there were, and how many processes could not be
// looked into. What they did so far is unknown; that they are there must not be.
func (p *Probe) inFlight(deliver func(event.Event)) (found, denied int) {
	all, memory := processes(), newPatient()
	toMonotonic := bootToMonotonic()
	var follow func(r *running, up, root taskKey, caller bpfCaller, home uint32)
	follow = func(r *running, up, root taskKey, caller bpfCaller, home uint32) {
		self := taskKey{Start: r.start, Tgid: r.pid, Pid: r.pid}
		if root.Tgid == 0 {
			root = self
		}
		entry := bpfProcess{Self: self, Parent: up, Root: root, Caller: uint8(caller), Home: home}
		p.watch(r.pid)
		// It fails where the kernel side met the process first; then it is known.
		if p.objects.Processes.Update(r.pid, &entry, 1 /* BPF_NOEXIST */) != nil {
			return
		}
		if hasShare(&entry) {
			p.takeShare()
		}
		p.join(root)
		if r.exec == nil {
			p.describe(memory, r)
		}
		r.exec.Process, r.exec.Parent = processKey(self), processKey(up)
		r.exec.Root = root == self
		if r.exec.Root {
			r.exec.Caller = callerOf(caller)
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
		up := taskKey{Tgid: r.parent, Pid: r.parent}
		if parent := all[r.parent]; parent != nil {
			up.Start = parent.start
		}
		// It began in the network namespace of who started it, and may be in the pod's by now.
		follow(r, up, taskKey{}, r.caller, networkOf(r.parent))
	}
	return found, denied
}

// describe reads what the process runs. It is true for one that is believed to be a plugin
// though nobody is known to have run it, and whose program lies in CNI_PATH.
func (p *Probe) describe(memory *patient, r *running) bool {
	if r.exec != nil {
		return r.exec.InPath && r.caller != bpfCallerCALLER_NOBODY
	}
	dir := fmt.Sprintf("/proc/%d/", r.pid)
	r.exec = &event.Exec{PID: r.pid, ParentPID: r.parent, InFlight: true}
	environ, err := memory.read(dir + "environ")
	if err != nil {
		r.denied = errors.Is(err, os.ErrPermission) || errors.Is(err, errHangs)
		return false
	}
	cmdline, _ := memory.read(dir + "cmdline")
	im := image{args: split(cmdline)}
	im.file, err = os.Readlink(dir + "exe")
	if bytes.Contains(environ, []byte("CNI_COMMAND=")) {
		// Environments alone can be read with CAP_PERFMON, too, on some kernels.
		r.denied = errors.Is(err, os.ErrPermission)
		r.caller = p.caller(r.pid)
		if r.caller != bpfCallerCALLER_NOBODY || rights(dir) != 0 {
			im.env = split(environ)
		}
	}
	// Of a script the link names the interpreter, and its file is an argument; of a plugin
	// that is itself a link, it names what that leads to, and the first argument the plugin.
	vars, _ := parseEnvironment(im.env)
	if folders := vars.folders(); len(folders) > 0 {
		if i := slices.IndexFunc(im.args[:min(len(im.args), 3)], func(a string) bool {
			return slices.Contains(folders, path.Dir(path.Clean(a)))
		}); i >= 0 {
			im.file, im.script = im.args[i], i > 0
		}
	}
	im.describe(r.exec, p.options.Arguments, &redact.Call{})
	if inode := networkOf(r.pid); inode != 0 {
		r.exec.NetNS.Label = strconv.FormatUint(uint64(inode), 10)
	}
	return r.exec.InPath && r.caller != bpfCallerCALLER_NOBODY
}

// processes lists /proc by pid. A process that ends meanwhile is left out.
func processes() map[uint32]*running {
	all := map[uint32]*running{}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, err := strconv.ParseUint(filepath.Base(dir), 10, 32)
		if err != nil {
			continue
		}
		data, err := os.ReadFile(dir + "/stat")
		if err != nil {
			continue
		}
		if parent, start, ok := parseStat(string(data)); ok {
			all[uint32(pid)] = &running{pid: uint32(pid), parent: parent, start: start}
		}
	}
	return all
}

// parseStat reads parent and start from /proc/PID/stat (proc(5)): fields 4 and 22,
// counted behind the command in parentheses, which may itself hold any character. It is
// false for one whose first thread has ended: what it runs cannot be read any more.
func parseStat(stat string) (parent uint32, start uint64, ok bool) {
	parent, start, state := parseAnyStat(stat)
	return parent, start, state != "" && state != "Z"
}

// parseAnyStat is parseStat with the state, field 3; empty for what cannot be read.
func parseAnyStat(stat string) (parent uint32, start uint64, state string) {
	i := strings.LastIndexByte(stat, ')')
	if i < 0 {
		return 0, 0, ""
	}
	fields := strings.Fields(stat[i+1:])
	if len(fields) < 20 {
		return 0, 0, ""
	}
	ppid, err1 := strconv.ParseUint(fields[1], 10, 32)
	ticks, err2 := strconv.ParseUint(fields[19], 10, 64)
	if err1 != nil || err2 != nil {
		return 0, 0, ""
	}
	return uint32(ppid), ticks * (1e9 / ticksPerSecond), fields[0]
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
