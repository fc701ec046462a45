package builds

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
)

// Plugins have up to 60 sections, with 1 KiB of names.
const (
	sectionsMax = 1024
	segmentsMax = 256
	namesMax    = 16 << 10
)

var errTables = errors.New("its headers are too large")

// ELF is elf.NewFile for hostile files: that unpacks 2 MB of names to 2 GiB.
func ELF(f io.ReaderAt) (*elf.File, error) {
	var head [64]byte
	_, _ = f.ReadAt(head[:], 0)
	var order binary.ByteOrder = binary.LittleEndian
	if elf.Data(head[elf.EI_DATA]) == elf.ELFDATA2MSB {
		order = binary.BigEndian
	}
	var h elf.Header64
	var names elf.Section64
	read := func(at int64, into any) { _ = binary.Read(io.NewSectionReader(f, at, 64), order, into) }
	if elf.Class(head[elf.EI_CLASS]) == elf.ELFCLASS64 {
		_ = binary.Read(bytes.NewReader(head[:]), order, &h)
		read(int64(h.Shoff)+int64(h.Shstrndx)*int64(h.Shentsize), &names)
	} else {
		var h32 elf.Header32
		var names32 elf.Section32
		_ = binary.Read(bytes.NewReader(head[:]), order, &h32)
		h.Shoff, h.Shnum, h.Phnum = uint64(h32.Shoff), h32.Shnum, h32.Phnum
		read(int64(h32.Shoff)+int64(h32.Shstrndx)*int64(h32.Shentsize), &names32)
		names.Flags, names.Size = uint64(names32.Flags), uint64(names32.Size)
	}
	if h.Shoff > 0 && h.Shnum == 0 || h.Shnum > sectionsMax || h.Phnum > segmentsMax ||
		h.Shnum > 0 && (names.Size > namesMax || names.Flags&uint64(elf.SHF_COMPRESSED) != 0) {
		return nil, errTables
	}
	file, err := elf.NewFile(f)
	if err != nil {
		return nil, err
	}
	for _, s := range file.Sections {
		if s.ReaderAt == nil { // compressed
			s.ReaderAt = bytes.NewReader(nil)
		}
	}
	return file, nil
}
