package functions

import (
	"os"
	"slices"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/builds"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// Watch samples a Go process.
type Watch struct {
	stacks *Stacks
	pid    int
	mounts uint32
	file   *os.File
	id     builds.Identity
	of     *process
	looks  int
	stays  map[place]*stay
	cpu    profile
}

type stay struct {
	looks  []int
	memory []byte // of its stack
}

const staysMax = 1 << 10 // with memory

// Watch returns nil without names.
func (s *Stacks) Watch(pid int) *Watch {
	w, err := procfs.Within(&s.patience, func() (*Watch, error) {
		w := &Watch{stacks: s, pid: pid, stays: map[place]*stay{}}
		return w, w.open()
	})
	if err != nil {
		return nil
	}
	if w.of == nil || w.of.table.bss == 0 {
		w.file.Close()
		return nil
	}
	return w
}

func (w *Watch) open() error {
	entry, err := procfs.Entry(w.pid)
	if err != nil {
		return err
	}
	if w.mounts, err = procfs.Namespace(w.pid, "mnt"); err != nil {
		return err
	}
	if w.file, err = builds.Running(w.pid); err != nil {
		return err
	}
	info, err := w.file.Stat()
	if err != nil {
		w.file.Close()
		return err
	}
	w.id = builds.IdentityOf(info)
	if p := w.stacks.program(w.file, w.id); p != nil {
		w.of = &process{Program: p, pid: w.pid, shift: entry - p.entry}
	}
	return nil
}

// Look reads the goroutines.
func (w *Watch) Look() {
	of := *w.of // a look that takes too long goes on
	places, err := procfs.Within(&w.stacks.patience, func() ([]place, error) {
		places := of.goroutines()
		mounts, _ := procfs.Namespace(w.pid, "mnt")
		if info, err := os.Stat(procfs.Runs(w.pid)); err != nil || mounts != w.mounts || builds.IdentityOf(info) != w.id {
			return nil, os.ErrNotExist
		}
		return places, nil
	})
	if err != nil {
		return
	}
	w.of.allgs, w.of.sought = of.allgs, of.sought
	w.looks++
	var again []place
	var at []uint64
	kept := 0
	for _, known := range w.stays {
		kept += min(1, len(known.memory))
	}
	for _, p := range places {
		known := w.stays[p]
		if known == nil {
			known = &stay{}
			w.stays[p] = known
		} else if known.memory == nil && p.sp != 0 && kept+len(again) < staysMax {
			again, at = append(again, p), append(at, p.sp)
		}
		known.looks = append(known.looks, w.looks)
	}
	for p, known := range w.stays {
		if 4*len(known.looks) < w.looks-known.looks[0] {
			delete(w.stays, p)
		}
	}
	memory, _ := procfs.Within(&w.stacks.patience, func() ([]byte, error) { return w.of.read(stackBytes, at...), nil })
	for i, p := range again {
		if w.stays[p] != nil && len(memory) >= (i+1)*stackBytes {
			w.stays[p].memory = slices.Clone(memory[i*stackBytes : (i+1)*stackBytes])
		}
	}
	w.cpu.look(w.pid)
}

// Looks counts them.
func (w *Watch) Looks() int { return w.looks }

// Between returns the calls of the only goroutine that stayed at one place, or computed, for most of a wait but not
// after it. It is sure above 80 %.
func (w *Watch) Between(first, last int) (calls []event.Frame, sure bool) {
	ended := func(s *stay) bool { return s.looks[len(s.looks)-1] <= last }
	return w.most(first, last, ended, w.of.own)
}

// Main is for plugins.
func (w *Watch) Main() []event.Frame {
	all, main := func(*stay) bool { return true }, func(f event.Frame) bool { return f.Function == "main.main" }
	calls, _ := w.most(0, w.looks, all, main)
	return calls
}

func (w *Watch) most(
	first, last int, may func(*stay) bool, preferred func(event.Frame) bool,
) (best []event.Frame, sure bool) {
	longest, next, owned := 0, 0, false
	w.stacks.spend(func() []event.Frame {
		for at, s := range w.stays {
			from, _ := slices.BinarySearch(s.looks, first+1)
			n := len(s.looks) - from
			if n < 2 || 2*n < last-first || !may(s) {
				continue
			}
			calls := w.calls(first, at, s)
			switch own := slices.ContainsFunc(calls, preferred); {
			case len(calls) == 0 || owned && !own:
			case own && !owned:
				best, longest, next, owned = calls, n, 0, true
			case n > longest:
				best, longest, next = calls, n, longest
			default:
				next = max(next, n)
			}
		}
		return nil
	})
	if 4*next > 3*longest {
		return nil, false
	}
	return best, 5*longest >= 4*(last-first)
}

func (w *Watch) calls(first int, at place, s *stay) []event.Frame {
	if at.sp != 0 {
		return w.of.callers(w.file, w.of.stack(w.file, at, s.memory))
	}
	return w.cpu.most(first, at, func(stack []uint64) []event.Frame {
		return w.of.callers(w.file, w.of.offsets(stack))
	})
}

// Close frees it.
func (w *Watch) Close() {
	w.cpu.close()
	w.file.Close()
}
