package winproc

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/windows/etw"
)

// Trace makes events from a recorded trace (.etl), which lacks environments.
type Trace struct {
	// Began is the start in ns of the trace's clock, Wall in ns since 1970.
	Began, Wall int64
	Agents      []string

	decoder     etw.Decoder
	processes   []etw.Process
	log         []line
	size        int
	first, last int64
	lives       []*lived
}

const (
	traceMax = 32 << 20 // bytes of process records
	timeMax  = 1 << 61
	// of a record without texts
	recordMax = 256
)

// ErrTraceTooLarge means that not all processes fit.
var ErrTraceTooLarge = fmt.Errorf("the trace's processes need more than %d MiB: the rest was not read", traceMax>>20)

type lived struct {
	etw.Process       // Time is the start
	ended       int64 // 0: not seen
	code        uint32
	lost        bool    // it ended before, without a record
	told        [2]bool // its start, by provider
	present     bool    // it ran before the trace
	up          *lived  // its parent
	file        string
	args        []string
	part        part
	call        *call
}

type part uint8

const (
	partUnasked part = iota
	partNone
	partRuntime
	partPlugin
	partCommand // below a plugin
	partAgent
	partWork // below an agent
)

// Take adds a record; others than of processes and containerd's log are ignored. It fails beyond the memory bound.
func (t *Trace) Take(r *etw.Record) error {
	if r.Time < 0 || r.Time > timeMax {
		return nil
	}
	t.last = max(t.last, r.Time)
	p, ok := t.decoder.Decode(r)
	if !ok {
		return t.heard(r)
	}
	t.processes = append(t.processes, p)
	return t.grow(len(p.Image) + len(p.CommandLine))
}

func (t *Trace) grow(n int) error {
	if t.size += recordMax + n; t.size > traceMax {
		return ErrTraceTooLarge
	}
	return nil
}

// Events delivers them by time. It fails without a CNI call.
func (t *Trace) Events(sink event.Sink) error {
	t.join()
	if len(t.lives) == 0 {
		return errors.New("the trace has no records of processes: record one with `cniscope record --etl FILE`, " +
			"or with wpr or logman as in docs/windows.md")
	}
	t.resolve()
	calls := t.calls()
	if len(calls) == 0 {
		return errors.New(t.without())
	}
	t.ask(calls)
	t.name(calls)
	t.tell(sink)
	return nil
}

func (t *Trace) without() string {
	started, runs := 0, "containerd.exe did not run"
	for _, l := range t.lives {
		if !l.present {
			started++
		}
		if t.partOf(l) == partRuntime {
			runs = "containerd.exe ran no plugin"
		}
	}
	return fmt.Sprintf("the trace has no CNI call, because %s in it; it has %d processes, of which %d started, "+
		"in %s from %s", runs, len(t.lives), started, time.Duration(t.last-t.first).Round(time.Millisecond),
		time.Unix(0, t.Wall+t.first-t.Began).UTC().Format("2006-01-02 15:04:05.000Z"))
}

// join makes one life of the records of a process from both providers, system logger (0) and Kernel-Process (1), whose
// times are the exact ones.
func (t *Trace) join() {
	slices.SortStableFunc(t.processes, func(a, b etw.Process) int { return cmp.Compare(a.Time, b.Time) })
	latest := map[uint32]*lived{}
	if len(t.processes) > 0 {
		t.first = t.processes[0].Time
	}
	for _, p := range t.processes {
		l, by := latest[p.PID], 0
		if p.Provider == etw.KernelProcess {
			by = 1
		}
		switch p.What {
		case etw.Start:
			if l == nil || l.present || l.told[by] || p.Time-l.Time > etw.JoinWithin {
				if l != nil && l.ended == 0 {
					l.ended, l.lost = p.Time, true
				}
				l = t.add(latest, p)
			}
			l.merge(p, by)
		case etw.End:
			if l == nil {
				l = t.add(latest, p)
				l.present, l.Time = true, t.first
			}
			if l.ended == 0 || by == 1 && p.Time-l.ended <= etw.JoinWithin {
				l.ended, l.code = p.Time, p.Code
			}
			l.fill(p)
		case etw.Present, etw.Remains:
			if l == nil || l.ended != 0 {
				l = t.add(latest, p)
				l.present, l.Time = true, t.first
			}
			l.fill(p)
		}
	}
	t.processes = nil
}

func (t *Trace) add(latest map[uint32]*lived, p etw.Process) *lived {
	l := &lived{Process: p}
	latest[p.PID] = l
	t.lives = append(t.lives, l)
	return l
}

func (l *lived) merge(p etw.Process, by int) {
	l.told[by] = true
	if by == 1 {
		l.Time = p.Time
	}
	l.fill(p)
}

func (l *lived) fill(p etw.Process) {
	if len(p.Image) > len(l.Image) {
		l.Image = p.Image
	}
	l.CommandLine = cmp.Or(l.CommandLine, p.CommandLine)
	l.Parent, l.Created = cmp.Or(l.Parent, p.Parent), cmp.Or(l.Created, p.Created)
}

// resolve finds the parents: PIDs are reused, so by time.
func (t *Trace) resolve() {
	byPID := map[uint32][]*lived{}
	for _, l := range t.lives {
		l.identify()
		if l.present && l.Created != 0 {
			l.Time = min(l.Time, t.Began+Filetime(l.Created).unix()-t.Wall)
		}
		byPID[l.PID] = append(byPID[l.PID], l)
	}
	byStart := func(a, b *lived) int { return cmp.Compare(a.Time, b.Time) }
	slices.SortStableFunc(t.lives, byStart)
	for _, all := range byPID {
		slices.SortStableFunc(all, byStart)
	}
	for _, l := range t.lives {
		all := byPID[l.Parent]
		i, _ := slices.BinarySearchFunc(all, l.Time+1, func(o *lived, at int64) int { return cmp.Compare(o.Time, at) })
		if i > 0 && all[i-1] != l && (all[i-1].ended == 0 || all[i-1].ended >= l.Time) {
			l.up = all[i-1]
		}
	}
}

// The system logger cuts names.
const cutName = 14

func (l *lived) identify() {
	l.args, l.file = split(l.CommandLine), program(l.Image)
	if len(l.args) == 0 {
		return
	}
	cut := path.Base(slashed(l.Image))
	l.args[0] = program(l.args[0])
	called := path.Base(l.args[0])
	switch {
	case strings.Contains(l.args[0], "/") && strings.EqualFold(called, path.Base(l.file)):
		l.file = l.args[0]
	case len(cut) >= cutName && strings.HasPrefix(strings.ToLower(called)+".exe", strings.ToLower(cut)):
		l.file = l.args[0]
	}
}

func (l *lived) name() string { return strings.ToLower(path.Base(l.file)) }

func (t *Trace) partOf(l *lived) part {
	if l == nil {
		return partNone
	}
	if l.part != partUnasked {
		return l.part
	}
	l.part = partNone // also ends a circle
	switch up := t.partOf(l.up); {
	case l.name() == "conhost":
	case up == partPlugin || up == partCommand:
		l.part = partCommand
	case l.name() == "containerd":
		l.part = partRuntime
	case up == partRuntime && l.plugin():
		l.part = partPlugin
	case slices.Contains(t.Agents, l.name()):
		l.part = partAgent
	case up == partAgent || up == partWork:
		l.part = partWork
	}
	return l.part
}

// libcni passes no arguments.
func (l *lived) plugin() bool {
	if strings.HasPrefix(l.name(), "containerd-shim") {
		return false
	}
	if len(l.args) == 0 {
		return strings.Contains(strings.ToLower(l.file), "/cni/")
	}
	return len(l.args) == 1
}

func (l *lived) key() event.Process { return keyOf(l.PID, Filetime(l.Time)) }
