package node

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/test/harness"
)

// A burst asks for each pod, and reading the descriptors of all processes costs tens of milliseconds.
func TestOtherNRIPluginsAreSearchedOnce(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "nri-of-a-test.sock")
	listener, err := net.Listen("unix", socket)
	harness.Check(t, err)
	defer listener.Close()
	connect := func() *os.File {
		conn, err := net.Dial("unix", socket)
		harness.Check(t, err)
		defer conn.Close()
		file, err := conn.(*net.UnixConn).File()
		harness.Check(t, err)
		accepted, err := listener.Accept()
		harness.Check(t, err)
		t.Cleanup(func() { accepted.Close() })
		return file
	}
	searches := 0
	n := newNRIPlugins(socket)
	n.pids = func() ([]int, error) { searches++; return procfs.All() }
	defer connect().Close() // cniscope itself
	for range 3 {
		if found := n.list(0); len(found) != 0 || searches != 1 {
			t.Fatalf("alone: %v after %d searches", found, searches)
		}
	}
	other := connect()
	plugin := exec.Command("sleep", "1000")
	plugin.ExtraFiles = []*os.File{other}
	harness.Check(t, plugin.Start())
	harness.Check(t, other.Close())
	for range 3 {
		if found := n.list(0); len(found) != 1 || int(found[0].PID) != plugin.Process.Pid || searches != 2 {
			t.Errorf("beside another: %v after %d searches", found, searches)
		}
	}
	harness.Check(t, plugin.Process.Kill())
	_ = plugin.Wait()
	if found := n.list(0); len(found) != 0 || searches != 3 {
		t.Errorf("alone again: %v after %d searches", found, searches)
	}
}
