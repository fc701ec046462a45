package builds

import (
	"bytes"
	"debug/elf"
	"runtime"
)

const (
	threadVariable = "otel_thread_ctx_v1"
	symbolSize     = 24
	symbolsMax     = 4 << 20 // bytes
	namesMost      = 1024    // of thread-local variables
	localsMax      = 1 << 30
)

// ThreadContext returns where an executable's threads publish their span (OTEP 4947), from the thread pointer.
func ThreadContext(f *elf.File) (offset int64, ok bool) {
	machine := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[runtime.GOARCH]
	s := f.SectionByType(elf.SHT_DYNSYM)
	if f.Class != elf.ELFCLASS64 || f.Machine != machine || s == nil || int(s.Link) >= len(f.Sections) {
		return 0, false
	}
	b := make([]byte, min(s.Size, symbolsMax))
	n, _ := s.ReadAt(b, 0)
	names := 0
	for b = b[:n]; len(b) >= symbolSize && names < namesMost; b = b[symbolSize:] {
		if elf.ST_TYPE(b[4]) != elf.STT_TLS || f.ByteOrder.Uint16(b[6:]) == uint16(elf.SHN_UNDEF) {
			continue
		}
		names++
		var name [len(threadVariable) + 1]byte
		_, _ = f.Sections[s.Link].ReadAt(name[:], int64(f.ByteOrder.Uint32(b)))
		if bytes.Equal(name[:], []byte(threadVariable+"\x00")) {
			return inThread(f, f.ByteOrder.Uint64(b[8:]))
		}
	}
	return 0, false
}

// inThread follows "ELF Handling for Thread-Local Storage": variant II (amd64), I (arm64).
func inThread(f *elf.File, at uint64) (int64, bool) {
	for _, p := range f.Progs {
		if p.Type != elf.PT_TLS {
			continue
		}
		align := max(p.Align, 1)
		if p.Memsz > localsMax || align > localsMax || align&(align-1) != 0 || at > p.Memsz {
			return 0, false
		}
		if f.Machine == elf.EM_AARCH64 {
			return int64(at + 16 + (p.Vaddr-16)&(align-1)), true
		}
		return int64(at - p.Memsz - (-p.Vaddr-p.Memsz)&(align-1)), true
	}
	return 0, false
}
