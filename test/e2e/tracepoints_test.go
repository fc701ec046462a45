//go:build linux

package e2e

import (
	"cmp"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
)

// tracepoints are two observers around a cniscope: bpftrace before it, and behind it one
// that only reads the clock. At one tracepoint the kernel calls the three in the order in
// which they were attached, so what cniscope reads off the clock must lie between what
// the two read, even on a machine whose CPU is taken away in between.
type tracepoints struct {
	before *bpftrace
	after  *clockReader
}

// watchTracepoints starts the first; around starts the second, when cniscope runs.
func watchTracepoints(t *testing.T) *tracepoints {
	t.Helper()
	return &tracepoints{before: startBpftrace(t)}
}

func (w *tracepoints) around(t *testing.T) {
	t.Helper()
	w.after = readClocks(t, "sched_process_exec", "sched_process_exit")
}

// moment is when a tracepoint was passed: between two readings, in ns since 1970.
type moment struct{ from, to int64 }

// off is how far at is from the moment.
func (m moment) off(at uint64) time.Duration {
	return time.Duration(min(0, int64(at)-m.from) + max(0, int64(at)-m.to))
}

// report is what one tracepoint said.
type report struct {
	what string
	at   moment
	// task is the process's number in the initial PID namespace, ours in the test's.
	task, ours int
	// child is the thread that was forked; file is what was executed.
	child int
	file  string
}

// stop ends both and returns what they reported, in order. What happened before the
// second came has no end.
func (w *tracepoints) stop(t *testing.T) (reports []report) {
	t.Helper()
	number := func(text string) int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		harness.Check(t, err)
		return n
	}
	after := w.after.stop(t)
	for _, f := range w.before.stop(t) {
		r := report{what: f[0], task: int(number(f[3])), ours: int(number(f[4]))}
		r.at.from = number(f[1])
		// What the same thread passes next is the same tracepoint.
		thread := after["sched_process_"+r.what][uint32(number(f[2]))]
		if i, _ := slices.BinarySearch(thread, r.at.from); i < len(thread) {
			r.at.to = thread[i] + w.before.wall.middle()
		}
		r.at.from += w.before.wall.middle()
		switch r.what {
		case "fork":
			r.child = int(number(f[5]))
		case "exec":
			r.file = f[5]
		}
		reports = append(reports, r)
	}
	// Each CPU has a buffer of its own.
	slices.SortStableFunc(reports, func(a, b report) int { return cmp.Compare(a.at.from, b.at.from) })
	return reports
}

// ran is one exec under a CNI call, as the tracepoints tell it.
type ran struct {
	pid        int
	file       string
	start, end moment
	// parent is the exec that it is under; nil where containerd forked it.
	parent *ran
}

// proc is a process while the reports are read.
type proc struct {
	runtime bool // containerd, or descends from it
	cni     bool // a CNI plugin, or descends from one
	// under is what the parent ran when it forked: through subshells, which never exec,
	// up to an exec.
	under  *ran
	plugin *ran // the plugin it is, whatever it runs next
	now    *ran // what it runs
}

// cniExecs picks from the reports what ran below the CNI calls of the containerd with
// the process number given, whose plugins are in bin.
func cniExecs(reports []report, containerd int, bin string) (all []*ran) {
	procs := map[int]*proc{} // by the number in the initial PID namespace
	for _, r := range reports {
		p := procs[r.task]
		if p == nil { // it was there before
			p = &proc{runtime: r.ours == containerd}
			procs[r.task] = p
		}
		switch r.what {
		case "fork": // or a thread, which is never the process of a report
			child := &proc{runtime: p.runtime, cni: p.cni, under: p.now}
			if child.under == nil {
				child.under = p.under
			}
			procs[r.child] = child
		case "exec":
			isPlugin := p.runtime && filepath.Dir(r.file) == bin
			if p.cni = p.cni || isPlugin; !p.cni {
				continue
			}
			e := &ran{pid: r.ours, file: r.file, start: r.at, parent: p.under}
			switch {
			case p.plugin != nil: // a plugin's process, now another image: the run goes on
				e.parent = p.plugin
			case isPlugin:
				p.plugin = e
			}
			if p.now != nil && p.now != p.plugin {
				p.now.end = r.at
			}
			p.now = e
			all = append(all, e)
		case "exit": // of a thread: the last one counts
			if p.now != nil {
				p.now.end = r.at
			}
			if p.plugin != nil {
				p.plugin.end = r.at
			}
		}
	}
	return all
}
