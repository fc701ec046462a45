//go:build linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

type gate struct {
	*testing.T
	fifo string
	held *os.File
}

func newGate(t *testing.T) *gate {
	g := &gate{T: t, fifo: filepath.Join(t.TempDir(), "gate")}
	t.Cleanup(g.open)
	return g
}

func (g *gate) rig() rig.Options {
	return rig.Options{
		Networks: []rig.Network{{Plugins: []rig.Plugin{rig.Bridge(), rig.Test("gate"), rig.Portmap()}}},
		Plugins: map[string][]byte{"gate": rig.Script(fmt.Sprintf(
			`if [ "$CNI_COMMAND" = ADD ] && [ -p %[1]s ]; then read -r go <%[1]s || :; fi`, g.fifo))},
	}
}

// podIn runs a pod, for which alone the gate closes, and returns when its ADD is in the gate.
func (s *stage) podIn(g *gate, name string) <-chan error {
	s.Helper()
	harness.Check(s.T, unix.Mkfifo(g.fifo, 0o600))
	done := s.rig.BeginPod(s.ctx, rig.PodOptions{Name: name})
	// A FIFO opens for writing without blocking once it has a reader.
	harness.Eventually(s, func() error {
		select {
		case err := <-done:
			s.Fatalf("pod %s did not wait: %v", name, err)
		default:
		}
		var err error
		g.held, err = os.OpenFile(g.fifo, os.O_WRONLY|unix.O_NONBLOCK, 0)
		return err
	})
	harness.Check(s.T, os.Remove(g.fifo))
	return done
}

func (g *gate) open() {
	if g.held != nil {
		_ = g.held.Close() // the reader gets EOF
		g.held = nil
	}
}
