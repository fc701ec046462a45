package harness

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// Nothing makes a program without libraries that exits at once, the cheapest one to run.
func Nothing(t testing.TB) (file string) {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		return "/bin/true"
	}
	const base = 0x400000
	code := []byte{0xb8, 60, 0, 0, 0, 0x31, 0xff, 0x0f, 0x05} // exit(0)
	var b bytes.Buffer
	// elf(5): the header, and one segment of the whole file.
	b.WriteString("\x7fELF\x02\x01\x01")
	b.Write(make([]byte, 9))
	for _, field := range []any{
		uint16(2), uint16(62), uint32(1), uint64(base + 120), uint64(64), uint64(0), uint32(0),
		uint16(64), uint16(56), uint16(1), uint16(0), uint16(0), uint16(0),
		uint32(1), uint32(5), uint64(0), uint64(base), uint64(base), uint64(120 + len(code)), uint64(120 + len(code)), uint64(4096),
	} {
		Check(t, binary.Write(&b, binary.LittleEndian, field))
	}
	b.Write(code)
	file = filepath.Join(t.TempDir(), "nothing")
	Check(t, os.WriteFile(file, b.Bytes(), 0o755))
	return file
}
