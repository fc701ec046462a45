package builds

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

// section has its names in section 2.
type section struct {
	kind  elf.SectionType
	flags elf.SectionFlag
	data  []byte
}

func fileOf(t *testing.T, names []byte, more ...section) *elf.File {
	t.Helper()
	all := append([]section{{}, {kind: elf.SHT_STRTAB, data: []byte{0}}, {kind: elf.SHT_STRTAB, data: names}}, more...)
	h := elf.Header64{
		Type: uint16(elf.ET_DYN), Machine: uint16(elf.EM_X86_64), Version: 1, Shoff: 64, Ehsize: 64, Shentsize: 64, Shnum: uint16(len(all)),
		Shstrndx: 1, Phentsize: 56,
	}
	copy(h.Ident[:], elf.ELFMAG+"\x02\x01\x01")
	var b, body bytes.Buffer
	harness.Check(t, binary.Write(&b, binary.LittleEndian, h))
	for _, s := range all {
		harness.Check(t, binary.Write(&b, binary.LittleEndian, elf.Section64{
			Type: uint32(s.kind), Flags: uint64(s.flags), Link: 2, Off: uint64(64 + 64*len(all) + body.Len()), Size: uint64(len(s.data)),
		}))
		body.Write(s.data)
	}
	f := harness.Must(ELF(bytes.NewReader(append(b.Bytes(), body.Bytes()...))))(t)
	return f
}

func encoded(t *testing.T, values ...any) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, v := range values {
		harness.Check(t, binary.Write(&b, binary.LittleEndian, v))
	}
	return b.Bytes()
}

// Before: 1 MB of a library took 4 GB and 16 s; an entry that is its own next one took all.
func TestAHostileLibrarySaysLittle(t *testing.T) {
	const long = 1 << 20
	names := append(bytes.Repeat([]byte("x"), long), 0)
	needed := slices.Repeat([]uint64{uint64(elf.DT_NEEDED), long - 4000}, 4000)
	verdef := slices.Repeat([]uint32{1, 1 << 16, 0, 0, 1}, 1000) // the next entry begins at its second byte
	verneed := slices.Repeat([]uint16{1, 1<<16 - 1, 0, 0, 1, 0, 1, 0}, 1000)
	d := DynamicOf(fileOf(
		t, names, section{kind: elf.SHT_DYNAMIC, data: encoded(t, needed)}, section{kind: elf.SHT_GNU_VERDEF, data: encoded(t, verdef)},
		section{kind: elf.SHT_GNU_VERNEED, data: encoded(t, verneed)},
	))
	size := 0
	for _, all := range [][]string{d.Needed, d.Has, d.Wants[""]} {
		size += len(strings.Join(all, ""))
	}
	if len(d.Needed) != tableMax/16 || len(d.Needed[0]) != 4000 || len(d.Has) > tableMax/16 || size > 8<<20 {
		t.Errorf("%d libraries, %d versions, %d wanted, %d bytes", len(d.Needed), len(d.Has), len(d.Wants), size)
	}
}

// Before: reading a compressed table ended cniscope (nil dereference).
func TestACompressedTableIsEmpty(t *testing.T) {
	packed := encoded(t, elf.Chdr64{Type: uint32(elf.COMPRESS_ZLIB), Size: 1 << 30, Addralign: 1})
	f := fileOf(t, []byte{0}, section{elf.SHT_DYNAMIC, elf.SHF_COMPRESSED, packed})
	harness.DeepEqual(t, DynamicOf(f), Dynamic{Wants: map[string][]string{}})
	if _, err := f.SectionByType(elf.SHT_DYNAMIC).ReadAt(make([]byte, 8), 0); err == nil {
		t.Error("it is read")
	}
}

// The programs of this machine say what debug/elf reads of them.
func TestWhatAProgramTellsTheLoader(t *testing.T) {
	for _, name := range []string{"/bin/sh", "/usr/bin/python3", "/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6"} {
		opened, err := os.Open(name)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		harness.Check(t, err)
		f := harness.Must(ELF(opened))(t)
		d := DynamicOf(f)
		needed := harness.Must(f.ImportedLibraries())(t)
		harness.EqualSlices(t, d.Needed, needed, name)
		has, _ := f.DynamicVersions()
		var versions []string
		for _, v := range has {
			versions = append(versions, v.Name)
		}
		harness.EqualSlices(t, d.Has, versions, name)
		needs, _ := f.DynamicVersionNeeds()
		for _, n := range needs {
			var wants []string
			for _, dep := range n.Needs {
				if dep.Flags&elf.VER_FLG_WEAK == 0 {
					wants = append(wants, dep.Dep)
				}
			}
			harness.EqualSlices(t, d.Wants[n.Name], wants, name, n.Name)
		}
		opened.Close()
	}
}
