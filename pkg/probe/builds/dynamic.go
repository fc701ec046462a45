package builds

import (
	"bytes"
	"debug/elf"
)

// Dynamic is what an ELF file tells the loader.
type Dynamic struct {
	Needed, RunPath, RPath []string
	Wants                  map[string][]string // strong versions, by library
	Has                    []string
}

// Libraries have up to 60 entries, and lists of directories.
const tableMax, stringMax = 16 << 10, 4 << 10

// DynamicOf replaces debug/elf, which makes 4 GB of a library of 1 MB.
func DynamicOf(f *elf.File) Dynamic {
	d := Dynamic{Wants: map[string][]string{}}
	order, word := f.ByteOrder, 8
	read := func(b []byte) uint64 { return order.Uint64(b) }
	if f.Class == elf.ELFCLASS32 {
		word, read = 4, func(b []byte) uint64 { return uint64(order.Uint32(b)) }
	}
	for b, text := table(f, elf.SHT_DYNAMIC); len(b) >= 2*word; b = b[2*word:] {
		name := func(into *[]string) { *into = append(*into, text(read(b[word:]))) }
		switch elf.DynTag(read(b)) {
		case elf.DT_NEEDED:
			name(&d.Needed)
		case elf.DT_RUNPATH:
			name(&d.RunPath)
		case elf.DT_RPATH:
			name(&d.RPath)
		}
	}
	// Each entry has 16 bytes.
	b, text := table(f, elf.SHT_GNU_VERDEF)
	at := func(i int) int { return int(order.Uint32(b[i:])) }
	for i, left := 0, len(b)/16; left > 0 && i+20 <= len(b) && i+at(i+12)+4 <= len(b); left-- {
		d.Has = append(d.Has, text(uint64(at(i+at(i+12)))))
		if at(i+16) == 0 {
			break
		}
		i += at(i + 16)
	}
	b, text = table(f, elf.SHT_GNU_VERNEED)
	for i, left := 0, len(b)/16; left > 0 && i+16 <= len(b); left-- {
		library := text(uint64(at(i + 4)))
		for j := i + at(i+8); left > 0 && j+16 <= len(b); left-- {
			if order.Uint16(b[j+4:])&uint16(elf.VER_FLG_WEAK) == 0 {
				d.Wants[library] = append(d.Wants[library], text(uint64(at(j+8))))
			}
			if at(j+12) == 0 {
				break
			}
			j += at(j + 12)
		}
		if at(i+12) == 0 {
			break
		}
		i += at(i + 12)
	}
	return d
}

func table(f *elf.File, kind elf.SectionType) (b []byte, text func(at uint64) string) {
	s := f.SectionByType(kind)
	if s == nil || int(s.Link) >= len(f.Sections) {
		return nil, nil
	}
	b = make([]byte, min(s.Size, tableMax))
	n, _ := s.ReadAt(b, 0)
	return b[:n], func(at uint64) string {
		var raw [stringMax]byte
		n, _ := f.Sections[s.Link].ReadAt(raw[:], int64(at))
		return string(raw[:max(bytes.IndexByte(raw[:n], 0), 0)])
	}
}
