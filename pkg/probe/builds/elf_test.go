package builds

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

// Before: 2 MB of a plugin's file took 7 GB of cniscope's memory.
func TestHostileHeadersAreRefused(t *testing.T) {
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	_, _ = w.Write(make([]byte, namesMax))
	harness.Check(t, w.Close())
	for name, test := range map[string]struct {
		change func(*elf.Header64, *elf.Section64)
		table  []byte
		sound  bool
	}{
		"sound":                 {func(*elf.Header64, *elf.Section64) {}, []byte{0}, true},
		"its names are packed":  {func(_ *elf.Header64, s *elf.Section64) { s.Flags = uint64(elf.SHF_COMPRESSED) }, packed.Bytes(), false},
		"its names are large":   {func(*elf.Header64, *elf.Section64) {}, make([]byte, namesMax+1), false},
		"it has many sections":  {func(h *elf.Header64, _ *elf.Section64) { h.Shnum = sectionsMax + 1 }, make([]byte, 1<<20), false},
		"it has more elsewhere": {func(h *elf.Header64, _ *elf.Section64) { h.Shnum = 0 }, []byte{0}, false},
		"it has many segments":  {func(h *elf.Header64, _ *elf.Section64) { h.Phnum = segmentsMax + 1 }, []byte{0}, false},
	} {
		for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
			h := elf.Header64{
				Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: 1, Shoff: 64, Ehsize: 64, Shentsize: 64, Shnum: 2, Shstrndx: 1,
				Phentsize: 56,
			}
			copy(h.Ident[:], elf.ELFMAG+"\x02\x01\x01")
			if order == binary.BigEndian {
				h.Ident[elf.EI_DATA] = byte(elf.ELFDATA2MSB)
			}
			s := elf.Section64{Type: uint32(elf.SHT_STRTAB), Off: 192, Size: uint64(len(test.table))}
			if test.change(&h, &s); s.Flags != 0 {
				s.Size += 24
			}
			var b bytes.Buffer
			harness.Check(t, errors.Join(binary.Write(&b, order, h), binary.Write(&b, order, [2]elf.Section64{1: s})))
			if s.Flags != 0 {
				harness.Check(t, binary.Write(&b, order, elf.Chdr64{Type: uint32(elf.COMPRESS_ZLIB), Size: namesMax, Addralign: 1}))
			}
			b.Write(test.table)
			if _, err := ELF(bytes.NewReader(b.Bytes())); (err == nil) != test.sound || err != nil && !errors.Is(err, errTables) {
				t.Errorf("%s, %s: %v", name, order, err)
			}
		}
	}
	own := harness.Must(os.Open("/proc/self/exe"))(t)
	defer own.Close()
	if f, err := ELF(own); err != nil || f.Section(".text") == nil {
		t.Errorf("this program: %v", err)
	}
}
