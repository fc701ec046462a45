package functions

import (
	"io"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
)

type process struct {
	*Program
	stacks *Stacks
	pid    int
	shift  uint64 // of its addresses
	sought bool
}

// place is where a goroutine waits: registers, zero while it runs, and bounds of its stack.
type place struct{ goroutine, sp, pc, low, high uint64 }

const (
	goroutinesMax = 1 << 11
	stackBytes    = 4 << 10
	piecesMax     = 1 << 10 // IOV_MAX
	goBytes       = 10 * 8  // of a runtime.g: stack, guards, _panic, _defer, m, sp, pc, g
	bssMax        = 64 << 20
)

func (at place) used() int { return int(min(stackBytes, at.high-at.sp)) }

func (p *process) read(size int, at ...uint64) []byte {
	from := make([]unix.RemoteIovec, 0, len(at))
	for _, a := range at {
		from = append(from, unix.RemoteIovec{Base: uintptr(a), Len: size})
	}
	return p.pieces(from)
}

func (p *process) memory(places []place) []byte {
	from := make([]unix.RemoteIovec, 0, len(places))
	for _, at := range places {
		from = append(from, unix.RemoteIovec{Base: uintptr(at.sp), Len: at.used()})
	}
	return p.pieces(from)
}

func (p *process) pieces(all []unix.RemoteIovec) (read []byte) {
	for from := range slices.Chunk(all, piecesMax) {
		size := 0
		for _, piece := range from {
			size += piece.Len
		}
		read = slices.Grow(read, size)
		into := unix.Iovec{Base: &read[:len(read)+1][len(read)]}
		into.SetLen(size)
		n, _ := unix.ProcessVMReadv(p.pid, []unix.Iovec{into}, from, 0)
		read = read[:len(read)+max(n, 0)]
		if n < size {
			break
		}
	}
	return read
}

func (p *process) words(raw []byte) []uint64 {
	words := make([]uint64, len(raw)/8)
	for i := range words {
		words[i] = p.order.Uint64(raw[8*i:])
	}
	return words
}

func (p *process) goroutines() (all []place) {
	allgs := p.allgs.Load()
	if allgs == 0 && !p.sought {
		allgs, p.sought = p.findAllgs(), true
		p.allgs.Store(allgs)
	}
	if allgs == 0 {
		return nil
	}
	list := p.words(p.read(24, allgs+p.shift))
	if len(list) < 3 || list[1] == 0 || list[1] > goroutinesMax {
		return nil
	}
	addresses := p.words(p.read(8*int(list[1]), list[0]))
	raw := p.read(goBytes, addresses...)
	words := p.words(raw)
	for i := range len(words) / (goBytes / 8) {
		g := words[i*goBytes/8:]
		switch at := (place{addresses[i], g[7], g[8], g[0], g[1]}); {
		case g[9] != addresses[i]:
		case at.sp == 0:
			at.pc = 0
			all = append(all, at)
		case at.sp >= at.low && at.sp < at.high:
			all = append(all, at)
		}
	}
	return all
}

// findAllgs finds a slice of goroutines, which have their own addresses.
func (p *process) findAllgs() uint64 {
	const step = 1 << 20
	for from := p.table.bss; from < min(p.table.bssEnd, p.table.bss+bssMax); from += step {
		words := p.words(p.read(int(min(step+16, p.table.bssEnd-from)), from+p.shift))
		for i := 0; i+2 < len(words); i++ {
			list, n := words[i], words[i+1]
			if list == 0 || list%8 != 0 || n < 3 || n > words[i+2] || words[i+2] > 1<<24 {
				continue
			}
			first := p.words(p.read(24, list))
			g := p.words(p.read(goBytes, first...))
			if len(first) == 3 && len(g) == 30 && g[9] == first[0] && g[19] == first[1] && g[29] == first[2] {
				return from + 8*uint64(i)
			}
		}
	}
	return 0
}

// stack returns a goroutine's calls, as offsets into the code, by frame sizes.
func (p *process) stack(f io.ReaderAt, at place, memory []byte) (calls []uint64) {
	f = &bounded{f, readsMax}
	pc, from := at.pc-p.shift, uint64(0)
	for range len(known{}.addresses) {
		size, ok := p.frame(f, pc)
		if !ok {
			break
		}
		calls = append(calls, pc-p.start)
		if from += uint64(size); size < 0 || from+8 > uint64(len(memory)) {
			break
		}
		pc = p.order.Uint64(memory[from:]) - p.shift
		from += 8
	}
	return calls
}

func (p *process) frame(f io.ReaderAt, pc uint64) (size int64, ok bool) {
	at := address{p.Program, pc}
	if size, ok = lookUp(p.stacks, p.stacks.sizes, at); ok {
		return size, ok
	}
	table := *p.table
	table.image.file = f
	function, ok := table.find(pc)
	if !ok {
		return 0, false
	}
	size = table.value(table.number(function, 16), table.text+table.number(function, 0), pc)
	if size >= 0 {
		store(p.stacks, p.stacks.sizes, placesMax, at, size)
	}
	return size, true
}

func (p *process) offsets(stack []uint64) []uint64 {
	offsets := slices.Clone(stack)
	for i := range offsets {
		offsets[i] -= p.shift + p.start
	}
	return offsets
}

func (p *Program) own(f event.Frame) bool {
	rest, is := strings.CutPrefix(f.Function, p.module)
	return strings.HasPrefix(f.Function, "main.") || p.module != "" && is && strings.IndexAny(rest, "./") == 0
}
