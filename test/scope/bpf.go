//go:build linux

package scope

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/cniscope/cniscope/test/harness"
)

// BPF is what a process has in the kernel: ids of programs and maps, and the number of links.
type BPF struct {
	Programs, Maps []uint32
	Attached       int
}

// BPFOf lists what the descriptors of a process hold.
func BPFOf(t testing.TB, pid int) (b BPF) {
	t.Helper()
	files := harness.Must(filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", pid)))(t)
	for _, file := range files {
		text, _ := os.ReadFile(file) // possibly closed
		for line := range strings.Lines(string(text)) {
			key, value, _ := strings.Cut(line, ":")
			id, err := strconv.ParseUint(strings.TrimSpace(value), 10, 32)
			switch {
			case err != nil:
			case key == "prog_id":
				b.Programs = append(b.Programs, uint32(id))
			case key == "link_id":
				b.Attached++
			case key == "map_id":
				b.Maps = append(b.Maps, uint32(id))
			}
		}
	}
	return b
}

// Gone is nil once the kernel has none of them. Ids are not reused soon.
func (b BPF) Gone() error {
	for _, id := range b.Programs {
		if p, err := ebpf.NewProgramFromID(ebpf.ProgramID(id)); !errors.Is(err, os.ErrNotExist) {
			return errors.Join(fmt.Errorf("program %d is still there", id), err, p.Close())
		}
	}
	for _, id := range b.Maps {
		if m, err := ebpf.NewMapFromID(ebpf.MapID(id)); !errors.Is(err, os.ErrNotExist) {
			return errors.Join(fmt.Errorf("map %d is still there", id), err, m.Close())
		}
	}
	return nil
}
