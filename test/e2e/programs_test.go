//go:build linux

package e2e

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"github.com/cniscope/cniscope/test/harness"
)

func runPrograms(t *testing.T, perSecond int) (end func() string) {
	t.Helper()
	const workers = 4
	program := smallest(t)
	var ran atomic.Int64
	var group sync.WaitGroup
	stop, began := make(chan struct{}), time.Now()
	for range workers {
		group.Go(func() {
			for next := time.Now(); ; next = next.Add(workers * time.Second / time.Duration(perSecond)) {
				select {
				case <-stop:
					return
				case <-time.After(time.Until(next)):
				}
				pid, err := syscall.ForkExec(program, []string{program}, nil)
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = syscall.Wait4(pid, nil, 0, nil)
				ran.Add(1)
			}
		})
	}
	return func() string {
		close(stop)
		group.Wait()
		took := time.Since(began)
		return fmt.Sprintf("%d programs in %s, %.0f a second", ran.Load(), took.Round(time.Millisecond), float64(ran.Load())/took.Seconds())
	}
}

func smallest(t *testing.T) string {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		return "/bin/true"
	}
	const base = 0x400000
	code := []byte{0x31, 0xff, 0xb8, 60, 0, 0, 0, 0x0f, 0x05} // exit(0)
	var b bytes.Buffer
	// elf(5): the header, and one segment of the whole file.
	b.WriteString("\x7fELF\x02\x01\x01")
	b.Write(make([]byte, 9))
	for _, field := range []any{
		uint16(2), uint16(62), uint32(1), uint64(base + 120), uint64(64), uint64(0), uint32(0),
		uint16(64), uint16(56), uint16(1), uint16(0), uint16(0), uint16(0),
		uint32(1), uint32(5), uint64(0), uint64(base), uint64(base), uint64(120 + len(code)), uint64(120 + len(code)), uint64(4096),
	} {
		harness.Check(t, binary.Write(&b, binary.LittleEndian, field))
	}
	b.Write(code)
	file := filepath.Join(t.TempDir(), "smallest")
	harness.Check(t, os.WriteFile(file, b.Bytes(), 0o755))
	return file
}

func tables(t *testing.T, pid int) map[string]int {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", pid))
	harness.Check(t, err)
	counts := map[string]int{}
	for _, file := range files {
		text, _ := os.ReadFile(file) // possibly closed
		for line := range strings.Lines(string(text)) {
			if name, value, _ := strings.Cut(line, ":"); name == "map_id" {
				count(t, strings.TrimSpace(value), counts)
			}
		}
	}
	return counts
}

func count(t *testing.T, id string, counts map[string]int) {
	t.Helper()
	n, err := strconv.ParseUint(id, 10, 32)
	harness.Check(t, err)
	m, err := ebpf.NewMapFromID(ebpf.MapID(n))
	harness.Check(t, err)
	defer m.Close()
	if m.Type() != ebpf.Hash && m.Type() != ebpf.LRUHash {
		return
	}
	info, err := m.Info()
	harness.Check(t, err)
	key, value := make([]byte, m.KeySize()), make([]byte, m.ValueSize())
	counts[info.Name] = 0
	for entries := m.Iterate(); entries.Next(&key, &value); {
		counts[info.Name]++
	}
}
