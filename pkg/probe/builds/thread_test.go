package builds

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"io"
	"runtime"
	"testing"
)

// The expected offsets are those that lld links (getTlsTpOffset).
func TestWhereAVariableIsInAThread(t *testing.T) {
	for _, test := range []struct {
		machine                  elf.Machine
		at, address, size, align uint64
		want                     int64
		ok                       bool
	}{
		{elf.EM_X86_64, 0, 0x3dd0, 8, 8, -8, true},
		{elf.EM_X86_64, 16, 0x3d80, 0x84, 64, 16 - 0xc0, true},
		{elf.EM_X86_64, 0, 0x3dd8, 8, 16, -8, true},
		{elf.EM_AARCH64, 8, 0x1fd80, 16, 8, 24, true},
		{elf.EM_AARCH64, 8, 0x1fd80, 16, 64, 72, true},
		{elf.EM_X86_64, 9, 0, 8, 8, 0, false},
		{elf.EM_X86_64, 0, 0, 8, 3, 0, false},
		{elf.EM_X86_64, 0, 0, 1 << 40, 8, 0, false},
	} {
		f := &elf.File{FileHeader: elf.FileHeader{Machine: test.machine}, Progs: []*elf.Prog{{ProgHeader: elf.ProgHeader{
			Type: elf.PT_TLS, Vaddr: test.address, Memsz: test.size, Align: test.align,
		}}}}
		if got, ok := inThread(f, test.at); got != test.want || ok != test.ok {
			t.Errorf("%+v: %d %t", test, got, ok)
		}
	}
}

// Without a bound a file of 4 MiB takes the reader 174,000 reads.
func TestManyThreadLocalVariables(t *testing.T) {
	symbols := bytes.Repeat([]byte{0, 0, 0, 0, byte(elf.STT_TLS), 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, symbolsMax/symbolSize)
	names := &counted{}
	f := &elf.File{FileHeader: elf.FileHeader{Class: elf.ELFCLASS64, Machine: elf.EM_X86_64, ByteOrder: binary.LittleEndian}, Sections: []*elf.Section{
		{SectionHeader: elf.SectionHeader{Type: elf.SHT_DYNSYM, Size: symbolsMax, Link: 1}, ReaderAt: bytes.NewReader(symbols)},
		{ReaderAt: names},
	}}
	if runtime.GOARCH == "arm64" {
		f.Machine = elf.EM_AARCH64
	}
	if _, ok := ThreadContext(f); ok || names.reads > namesMost {
		t.Errorf("%t after %d reads", ok, names.reads)
	}
}

type counted struct{ reads int }

func (c *counted) ReadAt([]byte, int64) (int, error) {
	c.reads++
	return 0, io.EOF
}
