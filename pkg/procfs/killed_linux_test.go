package procfs

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/harness"
)

// A thread that waits in a system call names the call and its path.
func TestAThreadThatWaitsForAPathIsListed(t *testing.T) {
	harness.Root(t)
	fifo := filepath.Join(t.TempDir(), "netns", "cni-1")
	harness.Check(t, os.Mkdir(filepath.Dir(fifo), 0o755))
	harness.Check(t, unix.Mkfifo(fifo, 0o600))
	opened := make(chan error, 1)
	go func() {
		fd, err := unix.Open(fifo, unix.O_RDONLY, 0) // waits for a writer
		_ = unix.Close(fd)
		opened <- err
	}()
	harness.Until(t, "the thread is listed", func() bool {
		for _, c := range PathCalls(os.Getpid()) {
			if c.Path == fifo && c.Call == "openat" {
				return true
			}
		}
		return false
	})
	fd := harness.Must(unix.Open(fifo, unix.O_WRONLY, 0))(t)
	harness.Check(t, unix.Close(fd))
	harness.Check(t, <-opened)
	harness.Equal(t, Killed(os.Getpid()), false, "killed")
}
