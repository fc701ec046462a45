package functions

import (
	"bufio"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

func built(t *testing.T, environ []string, flags ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "agent")
	build := exec.Command("go", append(append([]string{"build", "-o", file}, flags...), "./testdata/agent")...)
	build.Env = append(os.Environ(), environ...)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %s", err, out)
	}
	return file
}

// codeOf returns start and end of the code by /proc/PID/stat.
func codeOf(t *testing.T, stat string) (start, end uint64) {
	t.Helper()
	fields := strings.Fields(stat[strings.LastIndex(stat, ")"):])
	start = harness.Must(strconv.ParseUint(fields[24], 10, 64))(t)
	end = harness.Must(strconv.ParseUint(fields[25], 10, 64))(t)
	return start, end
}

func TestGoProgramsNameTheirCalls(t *testing.T) {
	for name, flags := range map[string][]string{
		"plain":             {},
		"stripped":          {"-ldflags=-s -w"},
		"trimmed":           {"-trimpath", "-ldflags=-s -w"},
		"stripped, PIE":     {"-trimpath", "-buildmode=pie", "-ldflags=-s -w"},
		"linked externally": {"-trimpath", "-ldflags=-s -w -linkmode=external"},
		"PIE, externally":   {"-trimpath", "-buildmode=pie", "-ldflags=-s -w -linkmode=external"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "trimmed" || strings.Contains(name, "PIE") || strings.Contains(name, "externally") {
				harness.Slow(t) // builds the standard library again
			}
			cgo := "CGO_ENABLED=0"
			if strings.Contains(name, "externally") {
				cgo = "CGO_ENABLED=1"
			}
			file := built(t, []string{cgo}, flags...)
			out := harness.Must(exec.Command(file).Output())(t)
			lines := bufio.NewReader(bytes.NewReader(out))
			var calls []struct {
				PC uint64
				event.Frame
			}
			line, _ := lines.ReadBytes('\n')
			harness.Check(t, json.Unmarshal(line, &calls))
			stat, _ := lines.ReadString('\n')
			start, end := codeOf(t, stat)
			f := harness.Must(os.Open(file))(t)
			defer f.Close()
			p := harness.Must(Open(f))(t)
			harness.Equal(t, p.Size(), end-start, "the size of the code")
			if p.table.data == 0 {
				t.Error("inlined calls are not found")
			}
			for i := 0; i < len(calls); {
				got := p.Frames(f, calls[i].PC-1-start)
				if len(got) == 0 || len(got) > len(calls)-i {
					t.Fatalf("call %d: %+v, want %+v", i, got, calls[i:])
				}
				for _, frame := range got {
					harness.Equal(t, calls[i].Frame, frame, "call", i)
					i++
				}
			}
			if len(calls) < 8 {
				t.Errorf("%+v", calls)
			}
		})
	}
}

func TestTheStandardLibraryIsNotTheAuthors(t *testing.T) {
	for function, want := range map[string]bool{
		"os/exec.(*Cmd).Run": true, "syscall.forkExec": true, "runtime.main": true, "net/http.HandlerFunc.ServeHTTP": true,
		"golang.org/x/sys/unix.Connect": true, "vendor/golang.org/x/net/http/httpproxy.FromEnvironment": true,
		"_rt0_amd64_linux":                  true,
		"internal/runtime/syscall.Syscall6": true, "slices.SortFunc[...]": true,
		"main.main": false, "antrea.io/antrea/pkg/agent.Run": false, "github.com/vishvananda/netlink.LinkAdd": false,
		"agent/net.Dial": false, "network.Dial": false, "k8s.io/utils/exec.(*executor).Command": false,
	} {
		harness.Equal(t, standard(function), want, function)
	}
}

// changed is a file with other bytes at some places.
type changed struct {
	io.ReaderAt
	at   int64
	with []byte
}

func (c changed) ReadAt(into []byte, from int64) (int, error) {
	n, err := c.ReaderAt.ReadAt(into, from)
	for i, b := range c.with {
		if at := c.at + int64(i) - from; at >= 0 && at < int64(n) {
			into[at] = b
		}
	}
	return n, err
}

// Before: a program whose data claims to be compressed ended cniscope (nil dereference).
func TestCompressedDataIsNotRead(t *testing.T) {
	name, err := os.Executable()
	harness.Check(t, err)
	own := harness.Must(os.Open(name))(t)
	defer own.Close()
	file := harness.Must(elf.NewFile(own))(t)
	var hostile io.ReaderAt = own
	var head [64]byte
	_, err = own.ReadAt(head[:], 0)
	harness.Check(t, err)
	for i, s := range file.Sections {
		if s.Name == ".go.module" || s.Name == ".noptrdata" || s.Name == ".data" {
			headers := int64(binary.LittleEndian.Uint64(head[40:])) // e_shoff
			hostile = changed{hostile, headers + 64*int64(i) + 8, []byte{byte(s.Flags | elf.SHF_WRITE), byte(elf.SHF_COMPRESSED >> 8)}}
			hostile = changed{hostile, int64(s.Offset), append([]byte{byte(elf.COMPRESS_ZLIB)}, make([]byte, 23)...)}
		}
	}
	if _, err := Open(hostile); err != nil {
		t.Log(err) // no table, or without inlined calls
	}
}

// FuzzProgram changes the headers, or the functions' table, of the test's own program.
func FuzzProgram(f *testing.F) {
	name := harness.Must(os.Executable())(f)
	own := harness.Must(os.Open(name))(f)
	f.Cleanup(func() { own.Close() })
	file := harness.Must(elf.NewFile(own))(f)
	p := harness.Must(Open(own))(f)
	table := file.Section(".gopclntab")
	f.Add(uint32(0), []byte{}, uint64(0), false)
	f.Add(uint32(8), []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, uint64(64), true)
	f.Add(uint32(40), []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, uint64(1<<20), true)
	f.Add(uint32(24), []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, uint64(1<<20), false)
	f.Fuzz(func(t *testing.T, at uint32, with []byte, offset uint64, inTable bool) {
		hostile := changed{own, int64(at % 4096), with}
		if inTable {
			hostile.at = int64(table.Offset) + int64(at)%int64(table.Size)
		}
		offset %= p.Size()
		for _, read := range []*Program{p, opened(hostile)} {
			if read == nil {
				continue
			}
			for _, frame := range read.Frames(hostile, offset) {
				if len(frame.Function) > nameMax+len("...") || len(frame.File) > nameMax {
					t.Errorf("%d and %d bytes", len(frame.Function), len(frame.File))
				}
			}
		}
	})
}

func opened(f io.ReaderAt) *Program {
	p, err := Open(f)
	if err != nil {
		return nil
	}
	return p
}
