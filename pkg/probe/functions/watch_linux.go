package functions

import (
	"cmp"
	"errors"
	"io"
	"os"
	"slices"
	"time"

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
	hung   bool
	stays  map[place]*stay
	cpu    profile
	main   uint64 // goroutine
}

type stay struct {
	looks  []int
	memory []byte
}

type candidate struct {
	place
	looks   int
	memory  []byte
	samples []sample
}

type choice struct {
	calls         []event.Frame
	longest, next int    // looks
	preferred     uint64 // goroutine
}

// WatchAfter is a wait's age when looks begin; LooksMax bounds them.
const (
	WatchAfter    = 200 * time.Millisecond
	LooksMax      = 400
	memoryMax     = 1 << 20 // of all stacks
	candidatesMax = 128
)

// Watch starts sampling; nil without names.
func (s *Stacks) Watch(pid int, mounts uint32) *Watch {
	w, err := procfs.Within(&s.patience, func() (*Watch, error) {
		w := &Watch{stacks: s, pid: pid, mounts: mounts, stays: map[place]*stay{}}
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
	if w.file, err = builds.Running(w.pid); err != nil {
		return err
	}
	info, err := w.file.Stat()
	if mounts, _ := procfs.Namespace(w.pid, "mnt"); err != nil || mounts == 0 || mounts != w.mounts {
		w.file.Close()
		return os.ErrNotExist
	}
	w.id = builds.IdentityOf(info)
	if p := w.stacks.program(w.file, w.id); p != nil {
		w.of = &process{Program: p, stacks: w.stacks, pid: w.pid, shift: entry - p.entry}
	}
	return nil
}

// Look reads the goroutines.
func (w *Watch) Look() {
	w.looks++
	w.cpu.looks = append(w.cpu.looks, nil)
	if w.hung {
		return
	}
	of := *w.of // a late look goes on
	places, err := procfs.Within(&w.stacks.patience, func() ([]place, error) {
		places := of.goroutines()
		mounts, _ := procfs.Namespace(w.pid, "mnt")
		if info, err := os.Stat(procfs.Runs(w.pid)); err != nil || mounts != w.mounts || builds.IdentityOf(info) != w.id {
			return nil, os.ErrNotExist
		}
		return places, nil
	})
	if err != nil {
		w.hung = errors.Is(err, procfs.ErrHangs)
		return
	}
	w.of.sought = of.sought
	again := w.note(places)
	var memory []byte
	if len(again) > 0 {
		memory, err = procfs.Within(&w.stacks.patience, func() ([]byte, error) { return of.memory(again), nil })
	}
	if w.hung = err != nil; w.hung {
		return
	}
	for _, p := range again {
		n := p.used()
		if len(memory) < n {
			break
		}
		if known := w.stays[p]; known != nil {
			known.memory = slices.Clone(memory[:n])
		}
		memory = memory[n:]
	}
	w.cpu.look(w.pid, slices.ContainsFunc(places, func(p place) bool { return p.sp == 0 }))
}

func (w *Watch) note(places []place) (again []place) {
	kept := 0
	for _, known := range w.stays {
		kept += len(known.memory)
	}
	for _, p := range places {
		known := w.stays[p]
		if known == nil {
			known = &stay{}
			w.stays[p] = known
		} else if known.memory == nil && p.sp != 0 && kept < memoryMax {
			again, kept = append(again, p), kept+p.used()
		}
		known.looks = append(known.looks, w.looks)
	}
	for p, known := range w.stays {
		if 4*len(known.looks) < w.looks-known.looks[0] {
			delete(w.stays, p)
		}
	}
	return again
}

// Looks returns how often Look ran.
func (w *Watch) Looks() int { return w.looks }

// Between returns the calls of the goroutine that in a wait, and not after it, stayed longest at one place, or
// computed, unless another came near (3/4). It is sure above 80 %.
func (w *Watch) Between(first, last int) (calls []event.Frame, sure bool) {
	ended := func(_ place, s *stay) bool { return s.looks[len(s.looks)-1] <= last }
	best, sure := w.most(first, last, ended, w.of.own)
	return best.calls, sure
}

// Main returns the main goroutine's calls.
func (w *Watch) Main() []event.Frame {
	may := func(at place, _ *stay) bool { return w.main == 0 || at.goroutine == w.main }
	best, _ := w.most(0, w.looks, may, func(f event.Frame) bool { return f.Function == "main.main" })
	w.main = cmp.Or(w.main, best.preferred)
	return best.calls
}

func (w *Watch) most(
	first, last int, may func(place, *stay) bool, preferred func(event.Frame) bool,
) (best choice, sure bool) {
	var all []candidate
	for at, s := range w.stays {
		from, _ := slices.BinarySearch(s.looks, first+1)
		n := len(s.looks) - from
		if n < 2 || 2*n < last-first || !may(at, s) {
			continue
		}
		if len(all) == candidatesMax {
			return best, false
		}
		c := candidate{place: at, looks: n, memory: s.memory}
		if at.sp == 0 {
			c.samples = w.cpu.samples(first, at)
		}
		all = append(all, c)
	}
	of, file := *w.of, w.file
	if len(all) == 0 {
		return best, last <= first
	}
	best = spend(w.stacks, func() choice { return of.choose(file, all, preferred) })
	if 4*best.next > 3*best.longest {
		return choice{preferred: best.preferred}, false
	}
	return best, 5*best.longest >= 4*(last-first)
}

func (p *process) choose(f io.ReaderAt, from []candidate, preferred func(event.Frame) bool) (best choice) {
	for _, c := range from {
		calls, owned := p.calls(f, c), best.preferred != 0
		switch own := slices.ContainsFunc(calls, preferred); {
		case len(calls) == 0 || owned && !own:
		case own && !owned:
			best = choice{calls, c.looks, 0, c.goroutine}
		case c.looks > best.longest:
			best = choice{calls, c.looks, best.longest, best.preferred}
		default:
			best.next = max(best.next, c.looks)
		}
	}
	return best
}

func (p *process) calls(f io.ReaderAt, c candidate) []event.Frame {
	if c.sp != 0 {
		return p.stacks.callers(p.Program, f, p.stack(f, c.place, c.memory))
	}
	return most(c.samples, func(stack []uint64) []event.Frame {
		return p.stacks.callers(p.Program, f, p.offsets(stack))
	})
}

// Close releases the rings and the file.
func (w *Watch) Close() {
	w.cpu.close()
	w.file.Close()
}
