package winproc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"testing"
	"unicode/utf16"

	"github.com/cniscope/cniscope/test/harness"
)

type made struct {
	bytes  map[uint64]byte
	narrow bool
	err    error
}

func (m *made) Block() (uint64, bool, error) { return 0x1000, m.narrow, m.err }

func (m *made) Read(at uint64, b []byte) error {
	for i := range b {
		v, is := m.bytes[at+uint64(i)]
		if !is {
			return errors.New("no such address")
		}
		b[i] = v
	}
	return nil
}

func (m *made) put(at uint64, b []byte) {
	for i, v := range b {
		m.bytes[at+uint64(i)] = v
	}
}

func wideText(s string) (b []byte) {
	for _, u := range utf16.Encode([]rune(s)) {
		b = binary.LittleEndian.AppendUint16(b, u)
	}
	return b
}

func makeMemory(small bool, command string, environment ...string) *made {
	m := &made{bytes: map[uint64]byte{}, narrow: small}
	l := wide
	if small {
		l = narrow
	}
	pointer := func(at, value uint64) {
		b := binary.LittleEndian.AppendUint64(nil, value)
		m.put(at, b[:l.word])
	}
	block := ""
	for _, v := range environment {
		block += v + "\x00"
	}
	text := wideText(block + "\x00")
	pointer(0x1000+l.parameters, 0x2000)
	pointer(0x2000+l.environment, 0x8000)
	pointer(0x2000+l.size, uint64(len(text)))
	m.put(0x8000, text)
	m.put(0x2000+l.command, binary.LittleEndian.AppendUint16(nil, uint16(2*len(command))))
	pointer(0x2000+l.command+l.word, 0x4000)
	m.put(0x4000, wideText(command))
	return m
}

func TestWhatAProcessWasStartedWith(t *testing.T) {
	for _, small := range []bool{false, true} {
		p, err := Told(makeMemory(small, `"C:\a b\c.exe" -x`, `=C:=C:\`, "CNI_COMMAND=ADD", "Ä=ß"))
		if err != nil || p.CommandLine != `"C:\a b\c.exe" -x` || !slices.Equal(p.Environment, []string{"CNI_COMMAND=ADD", "Ä=ß"}) || p.Truncated {
			t.Errorf("narrow %v: %+v, %v", small, p, err)
		}
	}
	long := makeMemory(false, "a", string(bytes.Repeat([]byte("x"), environmentMax)))
	if p, err := Told(long); err != nil || !p.Truncated || len(p.Environment[0]) != environmentMax/2 {
		t.Errorf("%v, truncated %v", err, p.Truncated)
	}
}

func TestAProcessThatIsNotStartedYet(t *testing.T) {
	young := makeMemory(false, "a", "b=c")
	young.put(0x2000+wide.size, make([]byte, 8))
	if _, err := Told(young); !errors.Is(err, ErrEarly) {
		t.Errorf("without a size: %v", err)
	}
	young.put(0x1000+wide.parameters, make([]byte, 8))
	if _, err := Told(young); !errors.Is(err, ErrEarly) {
		t.Errorf("without parameters: %v", err)
	}
}

// Any bytes are harmless.
func FuzzParameters(f *testing.F) {
	f.Add([]byte{}, uint16(3), uint32(8))
	f.Fuzz(func(_ *testing.T, block []byte, command uint16, size uint32) {
		m := makeMemory(false, "abc", "d=e")
		m.put(0x8000, block)
		m.put(0x2000+wide.command, binary.LittleEndian.AppendUint16(nil, command))
		m.put(0x2000+wide.size, binary.LittleEndian.AppendUint32(nil, size))
		if p, err := Told(m); err == nil {
			split(p.CommandLine)
		}
	})
}

// Checked against Windows in system_windows_test.go.
var commandLines = map[string][]string{
	``:                       nil,
	`a`:                      {"a"},
	`"a b" c`:                {"a b", "c"},
	`"a b"c d`:               {"a b", "c", "d"},
	`a b"c d"e  f`:           {"a", "bc de", "f"},
	`a "" b`:                 {"a", "", "b"},
	`a \\ \"b\" c\`:          {"a", `\\`, `"b"`, `c\`},
	`a "b\\" c`:              {"a", `b\`, "c"},
	`a "b\\\"c" d`:           {"a", `b\"c`, "d"},
	`C:\x\y.exe "C:\z w\" v`: {`C:\x\y.exe`, `C:\z w" v`},
	`powershell.exe -Command "try {Get-NetAdapter -InterfaceAlias \"vEthernet (db-6cqff-568022)\"}"`: {
		"powershell.exe", "-Command", `try {Get-NetAdapter -InterfaceAlias "vEthernet (db-6cqff-568022)"}`,
	},
}

func TestACommandLineIsTakenApart(t *testing.T) {
	for line, want := range commandLines {
		harness.EqualSlices(t, split(line), want, line)
	}
	// CommandLineToArgvW ends the quotes here; Go and C, which programs use, do not.
	if got, want := split(`a "b""c" d`), []string{"a", `b"c`, "d"}; !slices.Equal(got, want) {
		t.Errorf("two quotes within quotes: %q, want %q", got, want)
	}
}

func TestPaths(t *testing.T) {
	for path, want := range map[string]string{
		`C:\opt\cni\bin\antrea.exe`: "C:/opt/cni/bin/antrea", `\\?\C:\a.EXE`: "C:/a", `\??\C:\a.cmd`: "C:/a.cmd",
		".exe": ".exe", `C:/opt\x`: "C:/opt/x", "": "",
	} {
		harness.Equal(t, program(path), want, path)
	}
}
