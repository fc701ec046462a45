package removal

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/pkg/redact"
	"github.com/cniscope/cniscope/pkg/text"
)

type look struct {
	now     int64
	stats   map[int]procfs.Stat
	below   map[int][]int
	hangs   map[int]bool // itself or below
	memory  *procfs.Memory
	runtime int
	mounts  uint32
	known   map[string]*event.Sandbox
	found   []Step
}

func once(known []*event.Sandbox, runtime int, memory *procfs.Memory) []Step {
	l := &look{
		now: clock.Boot(), stats: map[int]procfs.Stat{}, below: map[int][]int{}, hangs: map[int]bool{}, memory: memory,
		runtime: runtime, known: map[string]*event.Sandbox{},
	}
	for _, s := range known {
		l.known[s.ID] = s
	}
	l.mounts, _ = procfs.Namespace(runtime, "mnt")
	pids, _ := procfs.All()
	for _, pid := range pids {
		if s, err := procfs.StatOf(pid); err == nil {
			l.stats[pid] = s
			l.below[s.Parent] = append(l.below[s.Parent], pid)
		}
	}
	for pid, s := range l.stats {
		for at := pid; s.State == "D" && at != 0 && !l.hangs[at]; at = l.stats[at].Parent {
			l.hangs[at] = true
		}
	}
	for _, pid := range slices.Sorted(maps.Keys(l.stats)) {
		l.process(pid)
	}
	l.namespaces()
	return l.found
}

const shim = "containerd-shim" // as cut by the kernel

func (l *look) process(pid int) {
	s := l.stats[pid]
	ofShim := s.Name == shim && l.sameMounts(pid)
	if !ofShim && s.Parent != l.runtime {
		return
	}
	args, _ := l.memory.Arguments(pid)
	of := l.sandboxIn(args)
	switch {
	case of == nil:
	case ofShim && !slices.Contains(args, "delete"):
		l.shim(pid, of)
	case verb(args) != "":
		l.program(pid, of, args)
	}
}

// sameMounts excludes pods, which can use any name.
func (l *look) sameMounts(pid int) bool {
	of, err := procfs.Namespace(pid, "mnt")
	return err == nil && of == l.mounts
}

func (l *look) sandboxIn(args []string) *event.Sandbox {
	for _, a := range args {
		if of := l.known[a]; of != nil {
			return of
		}
	}
	return nil
}

func (l *look) shim(pid int, of *event.Sandbox) {
	if s := l.stats[pid]; s.State == "T" || s.State == "t" {
		l.add(Step{
			Sandbox: of, Name: "shim", PID: pid, Cause: judge.CauseShim,
			undated: true,
			does:    fmt.Sprintf("the shim (pid %d) is stopped", pid),
		}, pid)
	}
	for _, child := range l.below[pid] {
		args, _ := l.memory.Arguments(child)
		removes, hangs := verb(args) != "", l.hangs[child]
		if !removes && !hangs {
			continue
		}
		switch own := procfs.Groups(child) == procfs.Groups(pid); {
		case own && removes:
			l.program(child, of, args)
		case !own && hangs && procfs.Killed(child):
			l.killed(child, of)
		}
	}
}

func (l *look) program(pid int, of *event.Sandbox, args []string) {
	name := program(l.stats[pid].Name)
	step := Step{
		Sandbox: of, Name: name + " " + verb(args), PID: pid, Cause: judge.CauseOCIRuntime,
		container: !slices.Contains(args, of.ID),
	}
	if name == shim {
		step.Cause = judge.CauseShim
	}
	step.does = fmt.Sprintf("%s (pid %d)", step.Name, pid)
	inner := pid
	for range len(l.stats) {
		if len(l.below[inner]) == 0 {
			break
		}
		inner = slices.MaxFunc(l.below[inner], func(a, b int) int { return cmp.Compare(l.stats[a].Start, l.stats[b].Start) })
	}
	if inner != pid {
		step.does += fmt.Sprintf(" runs %s (pid %d), which", program(l.stats[inner].Name), inner)
	}
	l.add(step, inner)
}

func (l *look) killed(pid int, of *event.Sandbox) {
	below := l.below[pid]
	delete(l.below, pid)
	for _, child := range below {
		l.killed(child, of)
	}
	if s := l.stats[pid]; s.State == "D" && procfs.Killed(pid) {
		l.add(Step{
			Sandbox: of, Name: "process of the pod", PID: pid, Cause: judge.CauseSystemCall,
			undated: true, container: true,
			does: fmt.Sprintf("killed process %s (pid %d) of the pod", program(s.Name), pid),
		}, pid)
	}
}

const stepsMax = 256

func (l *look) add(step Step, inner int) {
	if len(l.found) >= stepsMax {
		return
	}
	s := l.stats[inner]
	step.Age, step.Running = time.Duration(l.now-l.stats[step.PID].Start), time.Duration(l.now-s.Start)
	step.PID, step.Runs, step.State = inner, program(s.Name), s.State
	step.Waits, step.key = clean(procfs.FirstThread(inner).Channel), step.Name+strconv.FormatInt(s.Start, 10)
	l.found = append(l.found, step)
}

// netns accepts a whole path.
var netns = regexp.MustCompile(`^/[\w./-]*/netns/[\w.-]+$`)

func (l *look) namespaces() {
	for _, c := range procfs.PathCalls(l.runtime) {
		if !netns.MatchString(c.Path) {
			continue
		}
		step := Step{
			Name: c.Call, PID: l.runtime, Runs: program(l.stats[l.runtime].Name), State: c.State, Waits: clean(c.Channel),
			Cause: judge.CauseRuntime, undated: true, key: strings.Join([]string{c.ID, c.Call, c.Path}, " "),
			does: fmt.Sprintf("%s of network namespace %s by the runtime (pid %d)", c.Call, clean(c.Path), l.runtime),
		}
		for _, s := range l.known {
			if s.NetNS == c.Path {
				step.Sandbox = s
			}
		}
		l.found = append(l.found, step)
	}
}

func clean(s string) string { return text.Clean(s, text.Bound) }

func program(name string) string { return new(redact.Call).Program(clean(name)) }

func verb(args []string) string {
	for _, a := range args[min(1, len(args)):] {
		if a = path.Base(a); a == "kill" || a == "delete" {
			return a
		}
	}
	return ""
}
