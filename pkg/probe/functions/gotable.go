package functions

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"sort"
	"strings"

	"github.com/cniscope/cniscope/pkg/event"
)

// goTable is a Go program's function table (runtime/symtab.go), which stripping leaves.
type goTable struct {
	image
	at     uint64
	step   uint64 // PCs are multiples of it
	count  uint64
	names  uint64 // addresses of the table's parts
	units  uint64
	files  uint64
	values uint64
	funcs  uint64
	text   uint64 // start of Go's code
	data   uint64 // functions' data, for inlined calls; 0: unknown

	bss, bssEnd uint64
}

const (
	magic     = 0xfffffff1 // since Go 1.20
	funcBytes = 44         // size of a _func before its pcdata
	// large functions have thousands
	valuesMax = 1 << 16
	nameMax   = 512
	nestedMax = 16
	inlTree   = 3 // FUNCDATA_InlTree
	inlIndex  = 2 // PCDATA_InlTreeIndex
)

var errTable = errors.New("not a table of Go functions")

func newGoTable(file *elf.File, from image) (*goTable, error) {
	t := &goTable{image: from}
	for _, name := range []string{".gopclntab", ".data.rel.ro.gopclntab"} {
		if s := file.Section(name); s != nil {
			t.at = s.Addr
		}
	}
	var head [8 + 8*8]byte
	if t.at == 0 || file.Class != elf.ELFCLASS64 || t.read(t.at, head[:]) != nil ||
		t.order.Uint32(head[:]) != magic || head[7] != 8 {
		return nil, errTable
	}
	word := func(i int) uint64 { return t.order.Uint64(head[8+8*i:]) }
	t.step, t.count = uint64(head[6]), word(0)
	t.names, t.units, t.files, t.values, t.funcs = t.at+word(3), t.at+word(4), t.at+word(5), t.at+word(6), t.at+word(7)
	t.module(file)
	if t.text == 0 {
		if s := file.Section(".text"); s != nil {
			t.text = s.Addr
		}
		// With cgo C's code comes first.
		if at, ok := t.find(file.Entry); !ok || !strings.HasPrefix(t.name(t.number(at, 4)), "_rt0_") {
			return nil, errTable
		}
	}
	return t, nil
}

// Words of a moduledata, by index.
const (
	moduleNames  = 1
	moduleText   = 22
	moduleBSS    = 28
	moduleRodata = 39
	moduleFuncs  = 40
	moduleWords  = 41
	sectionMax   = 64 << 20
)

func (t *goTable) module(file *elf.File) {
	var words [moduleWords]uint64
	if !t.relocated(file, &words) {
		t.inSections(file, &words)
	}
	if words[0] != t.at || words[moduleNames] != t.names {
		return
	}
	t.text = words[moduleText]
	if file.Machine == elf.EM_X86_64 { // others keep return addresses elsewhere
		t.bss, t.bssEnd = words[moduleBSS], words[moduleBSS+1]
	}
	if words[moduleRodata] <= words[moduleFuncs] {
		t.data = words[moduleFuncs]
	}
}

func (t *goTable) inSections(file *elf.File, words *[moduleWords]uint64) {
	for _, name := range []string{".go.module", ".noptrdata", ".data"} {
		s := file.Section(name)
		if s == nil || s.Type == elf.SHT_NOBITS {
			continue
		}
		for buffer, from := make([]byte, 64<<10), uint64(0); from < min(s.FileSize, sectionMax); from += uint64(len(buffer)) {
			n, _ := s.ReadAt(buffer, int64(from))
			for i := 0; i+8 <= n; i += 8 {
				if t.order.Uint64(buffer[i:]) != t.at {
					continue
				}
				var raw [8 * moduleWords]byte
				if t.read(s.Addr+from+uint64(i), raw[:]) != nil || t.order.Uint64(raw[8*moduleNames:]) != t.names {
					continue
				}
				for w := range words {
					words[w] = t.order.Uint64(raw[8*w:])
				}
				return
			}
		}
	}
}

// relocated reads the words from the relocations, where position-independent programs have them.
func (t *goTable) relocated(file *elf.File, words *[moduleWords]uint64) bool {
	s := file.Section(".rela.dyn")
	if s == nil || s.Type != elf.SHT_RELA { //nolint:misspell // ELF has it
		return false
	}
	at := uint64(0)
	each := func(f func(offset, addend uint64)) {
		buffer := make([]byte, 24*2048)
		for from := uint64(0); from < min(s.FileSize, sectionMax); from += uint64(len(buffer)) {
			n, _ := s.ReadAt(buffer, int64(from))
			for i := 0; i+24 <= n; i += 24 {
				f(t.order.Uint64(buffer[i:]), t.order.Uint64(buffer[i+16:]))
			}
		}
	}
	candidates := map[uint64]bool{}
	each(func(offset, addend uint64) {
		if addend == t.at && len(candidates) < 64 {
			candidates[offset] = true
		}
	})
	if len(candidates) == 0 {
		return false
	}
	each(func(offset, addend uint64) {
		if addend == t.names && candidates[offset-8*moduleNames] {
			at = offset - 8*moduleNames
		}
	})
	each(func(offset, addend uint64) {
		if i := (offset - at) / 8; at != 0 && offset >= at && i < moduleWords {
			words[i] = addend
		}
	})
	return at != 0
}

func (t *goTable) number(at, index uint64) uint64 {
	var raw [4]byte
	if t.read(at+index, raw[:]) != nil {
		return 0
	}
	return uint64(t.order.Uint32(raw[:]))
}

// name leaves out type parameters, as the runtime does.
func (t *goTable) name(offset uint64) string {
	name := t.text0(t.names + offset)
	if from, to := strings.IndexByte(name, '['), strings.LastIndexByte(name, ']'); from >= 0 && from < to {
		name = name[:from+1] + "..." + name[to:]
	}
	return name
}

func (t *goTable) find(pc uint64) (at uint64, ok bool) {
	if pc < t.text || t.count == 0 || t.count > 1<<24 {
		return 0, false
	}
	off := pc - t.text
	i := uint64(sort.Search(int(t.count)+1, func(i int) bool { return t.number(t.funcs, 8*uint64(i)) > off }))
	if i == 0 || i > t.count {
		return 0, false
	}
	return t.funcs + t.number(t.funcs, 8*(i-1)+4), true
}

func (t *goTable) value(table, entry, pc uint64) int64 {
	if table == 0 {
		return -1
	}
	in := &bytesAt{image: &t.image, at: t.values + table}
	value, at := int64(-1), entry
	for range valuesMax {
		delta, err := binary.ReadUvarint(in)
		if err != nil || delta == 0 && at != entry {
			return -1
		}
		value += int64(int32(uint32(delta)>>1) ^ -int32(uint32(delta)&1))
		length, err := binary.ReadUvarint(in)
		if err != nil {
			return -1
		}
		if at += length * t.step; pc < at {
			return value
		}
	}
	return -1
}

func (t *goTable) frames(pc uint64) (all []event.Frame) {
	at, ok := t.find(pc)
	if !ok {
		return nil
	}
	entry := t.text + t.number(at, 0)
	pcdata := func(i uint64) uint64 {
		if i >= t.number(at, 28) {
			return 0
		}
		return t.number(at, funcBytes+4*i)
	}
	tree := t.inlined(at)
	for range nestedMax {
		name, parent := t.number(at, 4), uint64(0)
		index := int64(-1)
		if tree != 0 {
			index = t.value(pcdata(inlIndex), entry, pc)
		}
		if index >= 0 {
			call := tree + 16*uint64(index)
			name, parent = t.number(call, 4), entry+t.number(call, 8)
		}
		f := event.Frame{Function: t.name(name), File: t.file(at, entry, pc)}
		if line := t.value(t.number(at, 24), entry, pc); line > 0 && f.File != "" {
			f.Line = int(line)
		}
		if f.Function == "" {
			return all
		}
		all = append(all, f)
		if index < 0 {
			return all
		}
		pc = parent
	}
	return all
}

// inlined returns the address of a function's inlined calls; 0: none, or unknown.
func (t *goTable) inlined(at uint64) uint64 {
	var flags [4]byte // funcID, flag, padding, nfuncdata
	if t.data == 0 || t.read(at+funcBytes-4, flags[:]) != nil || flags[3] <= inlTree {
		return 0
	}
	offset := t.number(at, funcBytes+4*t.number(at, 28)+4*inlTree)
	if offset == 1<<32-1 {
		return 0
	}
	return t.data + offset
}

func (t *goTable) file(at, entry, pc uint64) string {
	i, unit := t.value(t.number(at, 20), entry, pc), t.number(at, 32)
	if i < 0 || unit == 1<<32-1 {
		return ""
	}
	offset := t.number(t.units, 4*(unit+uint64(i)))
	if offset == 1<<32-1 {
		return ""
	}
	return t.text0(t.files + offset)
}

type bytesAt struct {
	*image
	at     uint64
	buffer [64]byte
	left   []byte
}

func (b *bytesAt) ReadByte() (byte, error) {
	if len(b.left) == 0 {
		n := b.readSome(b.at, b.buffer[:])
		if n == 0 {
			return 0, io.ErrUnexpectedEOF
		}
		b.left, b.at = b.buffer[:n], b.at+uint64(n)
	}
	c := b.left[0]
	b.left = b.left[1:]
	return c, nil
}
