//go:build linux

package e2e

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

type loadedBPF struct {
	programs, maps []uint32
	attached       int
}

func bpfOf(t *testing.T, pid int) (b loadedBPF) {
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
				b.programs = append(b.programs, uint32(id))
			case key == "link_id":
				b.attached++
			case key == "map_id":
				b.maps = append(b.maps, uint32(id))
			}
		}
	}
	return b
}

// gone is nil once the kernel has none of them. Ids are not reused soon.
func (b loadedBPF) gone() error {
	for _, id := range b.programs {
		if p, err := ebpf.NewProgramFromID(ebpf.ProgramID(id)); !errors.Is(err, os.ErrNotExist) {
			return errors.Join(fmt.Errorf("program %d is still there", id), err, p.Close())
		}
	}
	for _, id := range b.maps {
		if m, err := ebpf.NewMapFromID(ebpf.MapID(id)); !errors.Is(err, os.ErrNotExist) {
			return errors.Join(fmt.Errorf("map %d is still there", id), err, m.Close())
		}
	}
	return nil
}
