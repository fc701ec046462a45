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

// gate is a plugin in which an ADD stands until the test lets it go.
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

// rig has the gate as the second of three plugins.
func (g *gate) rig() rig.Options {
	return rig.Options{
		Networks: []rig.Network{{Plugins: []rig.Plugin{rig.Bridge(), rig.Test("gate"), rig.Portmap()}}},
		Plugins: map[string][]byte{"gate": rig.Script(fmt.Sprintf(
			`if [ "$CNI_COMMAND" = ADD ] && [ -p %[1]s ]; then read -r go <%[1]s || :; fi`, g.fifo))},
	}
}

// podIn runs a pod and returns when its ADD stands in the gate, which is there for
// this pod alone. The channel says what
// became of it.
func (s *stage) podIn(g *gate, name string) <-chan error {
	s.Helper()
	harness.Check(s.T, unix.Mkfifo(g.fifo, 0o600))
	done := make(chan error, 1)
	go func() {
		_, err := s.rig.RunPod(s.ctx, rig.PodOptions{Name: name})
		done <- err
	}()
	// A FIFO can be opened for writing, without waiting, once somebody reads.
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
		_ = g.held.Close() // the reader comes to the end of the file
		g.held = nil
	}
}
