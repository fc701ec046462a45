package functions

import (
	"encoding/binary"
	"slices"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/procfs"
)

type profile struct {
	rings map[int][]byte // by thread
	looks [][]sample     // until each look
	kept  int
}

type sample struct {
	stack []uint64
	sp    uint64
}

const (
	sampledHz   = 99
	threadsMax  = 64
	ringPages   = 1 + 2 // 27 samples
	samplesMax  = 32    // to name
	samplesKept = 1 << 12
	enough      = 3
	regSP       = 7            // PERF_REG_X86_SP
	afterMarker = 1<<64 - 4096 // PERF_CONTEXT_MAX
)

func (p *profile) look(pid int, computes bool) {
	var now []sample
	for _, ring := range p.rings {
		now = append(now, take(ring)...)
	}
	p.keep(now)
	if !computes {
		return
	}
	threads, err := procfs.Threads(pid, threadsMax)
	for id, ring := range p.rings {
		if err == nil && !slices.ContainsFunc(threads, func(t procfs.Thread) bool { return t.ID == id }) {
			_ = unix.Munmap(ring)
			delete(p.rings, id)
		}
	}
	for _, t := range threads {
		if t.State != "R" || p.rings[t.ID] != nil {
			continue
		}
		fd, err := unix.PerfEventOpen(&unix.PerfEventAttr{
			Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK,
			Size:   uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
			Sample: sampledHz, Sample_type: unix.PERF_SAMPLE_CALLCHAIN | unix.PERF_SAMPLE_REGS_USER,
			Sample_max_stack: uint16(len(known{}.addresses)), Sample_regs_user: 1 << regSP,
			Bits: unix.PerfBitFreq | unix.PerfBitExcludeKernel | unix.PerfBitExcludeCallchainKernel,
		}, t.ID, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
		if err != nil {
			continue
		}
		ring, err := unix.Mmap(fd, 0, ringPages*unix.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		_ = unix.Close(fd) // the mapping keeps it
		if err != nil {
			continue
		}
		if p.rings == nil {
			p.rings = map[int][]byte{}
		}
		p.rings[t.ID] = ring
	}
}

func (p *profile) keep(now []sample) {
	p.looks[len(p.looks)-1] = now
	p.kept += len(now)
	for i := 0; p.kept > samplesKept; i++ {
		p.kept -= len(p.looks[i])
		p.looks[i] = nil
	}
}

func take(ring []byte) (all []sample) {
	page := (*unix.PerfEventMmapPage)(unsafe.Pointer(&ring[0]))
	data := ring[unix.Getpagesize():]
	head := atomic.LoadUint64(&page.Data_head)
	word := func(at uint64) uint64 { return binary.NativeEndian.Uint64(data[at%uint64(len(data)):]) }
	for at := page.Data_tail; at < head; {
		header := word(at)
		kind, size := uint32(header), header>>48
		if kind == unix.PERF_RECORD_SAMPLE {
			var s sample
			depth := min(word(at+8), size/8)
			for i := range depth {
				if address := word(at + 16 + 8*i); address < afterMarker {
					s.stack = append(s.stack, address)
				}
			}
			if word(at+16+8*depth) != 0 { // the registers' ABI
				s.sp = word(at + 24 + 8*depth)
			}
			all = append(all, s)
		}
		at += max(size, 8)
	}
	atomic.StoreUint64(&page.Data_tail, head)
	return all
}

func (p *profile) samples(look int, of place) (all []sample) {
	for _, samples := range p.looks[look:] {
		for _, s := range samples {
			if s.sp >= of.low && s.sp < of.high {
				all = append(all, s)
			}
		}
	}
	return all
}

// most returns the calls to the innermost function of most of a goroutine's samples.
func most(samples []sample, name func([]uint64) []event.Frame) (best []event.Frame) {
	if len(samples) < enough {
		return nil
	}
	times, shortest, named := map[string]int{}, map[string][]event.Frame{}, 0
	for at := 0; at < len(samples); at += len(samples)/samplesMax + 1 {
		calls, seen := name(samples[at].stack), map[string]bool{}
		named++
		for i, f := range calls {
			if !seen[f.Function] {
				seen[f.Function] = true
				times[f.Function]++
				shortest[f.Function] = calls[i:]
			}
		}
	}
	for function, calls := range shortest {
		if 2*times[function] > named && (best == nil || len(calls) > len(best)) {
			best = calls
		}
	}
	return best
}

func (p *profile) close() {
	for _, ring := range p.rings {
		_ = unix.Munmap(ring)
	}
}
