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

// tracepoints are two observers around cniscope. The kernel calls them in the order of attachment,
// so cniscope's times lie between theirs.
type tracepoints struct {
	before *bpftrace
	after  *clockReader
}

// watchTracepoints starts the first; around starts the second once cniscope runs.
func watchTracepoints(t *testing.T) *tracepoints {
	t.Helper()
	return &tracepoints{before: startBpftrace(t)}
}

func (w *tracepoints) around(t *testing.T) {
	t.Helper()
	w.after = readClocks(t, "sched_process_exec", "sched_process_exit")
}

type moment struct{ from, to int64 }

func (m moment) off(at uint64) time.Duration {
	return time.Duration(min(0, int64(at)-m.from) + max(0, int64(at)-m.to))
}

type report struct {
	what       string
	at         moment
	task, ours int
	// child is the forked thread; file the executed file.
	child int
	file  string
}

// stop stops both and returns the reports in order. Those before the second observer have no upper bound.
func (w *tracepoints) stop(t *testing.T) (reports []report) {
	t.Helper()
	number := func(text string) int64 {
		return harness.Must(strconv.ParseInt(text, 10, 64))(t)
	}
	after := w.after.stop(t)
	for _, f := range w.before.stop(t) {
		r := report{what: f[0], task: int(number(f[3])), ours: int(number(f[4]))}
		r.at.from = number(f[1])
		// The thread's next reading is of the same tracepoint.
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
	// Each CPU has its own buffer.
	slices.SortStableFunc(reports, func(a, b report) int { return cmp.Compare(a.at.from, b.at.from) })
	return reports
}

type ran struct {
	pid        int
	file       string
	start, end moment
	// parent is the exec above; nil for containerd's child.
	parent *ran
}

type proc struct {
	runtime bool // containerd or a descendant
	cni     bool // a CNI plugin or a descendant
	under   *ran
	plugin  *ran // its plugin, whatever it runs later
	now     *ran // its current program
}

// cniExecs returns the execs below the CNI calls of a containerd, whose plugins are in bin.
func cniExecs(reports []report, containerd int, bin string) (all []*ran) {
	procs := map[int]*proc{} // by PID in the initial namespace
	for _, r := range reports {
		p := procs[r.task]
		if p == nil { // existed before
			p = &proc{runtime: r.ours == containerd}
			procs[r.task] = p
		}
		switch r.what {
		case "fork": // or a thread
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
			case p.plugin != nil: // a plugin's process with another image
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
