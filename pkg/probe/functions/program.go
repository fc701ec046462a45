// Package functions names the functions of programs by addresses in their code.
package functions

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"sync/atomic"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/builds"
)

// Program has the places of an ELF file's names.
type Program struct {
	image
	start, end uint64 // of the code, as in fs/binfmt_elf.c
	entry      uint64
	table      *goTable
	module     string
	allgs      atomic.Uint64 // address of runtime.allgs; 0: unknown
}

// Open finds a program's tables.
func Open(f io.ReaderAt) (*Program, error) {
	f = &bounded{f, readsMax}
	file, err := builds.ELF(f)
	if err != nil {
		return nil, err
	}
	p := &Program{image: image{file: f, order: file.ByteOrder}, start: 1<<64 - 1, entry: file.Entry}
	for _, s := range file.Progs {
		if s.Type != elf.PT_LOAD {
			continue
		}
		p.segments = append(p.segments, segment{s.Vaddr, s.Off, s.Filesz})
		if s.Flags&elf.PF_X != 0 {
			p.start, p.end = min(p.start, s.Vaddr), max(p.end, s.Vaddr+s.Filesz)
		}
	}
	if p.start >= p.end {
		return nil, errors.New("a program without code")
	}
	if p.table, err = newGoTable(file, p.image); err != nil {
		return nil, err
	}
	if info, err := buildinfo.Read(f); err == nil {
		p.module = info.Main.Path
	}
	return p, nil
}

// Size is the code's, in bytes, as the kernel counts it.
func (p *Program) Size() uint64 { return p.end - p.start }

// Frames returns the calls at an offset into the code, innermost first. f is the reopened file.
func (p *Program) Frames(f io.ReaderAt, offset uint64) []event.Frame {
	if offset >= p.Size() {
		return nil
	}
	table := *p.table
	table.image.file = f
	return table.frames(p.start + offset)
}

// readsMax bounds the reads for a program or a stack, which need up to 10 and 2,000.
const readsMax = 1 << 14

type bounded struct {
	io.ReaderAt
	left int
}

func (b *bounded) ReadAt(into []byte, at int64) (int, error) {
	if b.left--; b.left < 0 {
		return 0, errTable
	}
	return b.ReaderAt.ReadAt(into, at)
}

type image struct {
	file     io.ReaderAt
	order    binary.ByteOrder
	segments []segment
}

type segment struct{ address, offset, size uint64 }

var errAddress = errors.New("an address outside of the file")

func (m *image) read(address uint64, into []byte) error {
	if m.readSome(address, into) < len(into) {
		return errAddress
	}
	return nil
}

func (m *image) readSome(address uint64, into []byte) int {
	for _, s := range m.segments {
		if address >= s.address && address-s.address < s.size {
			n := min(uint64(len(into)), s.size-(address-s.address))
			got, _ := m.file.ReadAt(into[:n], int64(s.offset+address-s.address))
			return got
		}
	}
	return 0
}

// text0 returns a NUL-terminated string, empty if it is longer than nameMax.
func (m *image) text0(address uint64) string {
	var raw [nameMax]byte
	n := m.readSome(address, raw[:])
	end := bytes.IndexByte(raw[:n], 0)
	return string(raw[:max(end, 0)])
}
