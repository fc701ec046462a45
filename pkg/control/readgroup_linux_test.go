package control

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/harness"
)

// Only root and the group may use the socket, and only root its directory.
func TestOnlyTheGroupMayAsk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: becomes somebody else")
	}
	const group, user = 60947, 65533
	dir := harness.Must(os.MkdirTemp("", "read"))(t)
	defer os.RemoveAll(dir)
	folder := filepath.Join(dir, "read")
	harness.Check(t, os.Chmod(dir, 0o755))
	l := harness.Must(ListenRead(folder, group))(t)
	defer l.Close()
	path := filepath.Join(folder, ReadSocket)
	for _, as := range []struct {
		user, group int
		want        error
	}{{user, group, nil}, {user, user, unix.EACCES}, {0, 0, nil}} {
		if err := connectAs(as.user, as.group, path); !errors.Is(err, as.want) {
			t.Errorf("user %d of group %d: %v, want %v", as.user, as.group, err, as.want)
		}
	}
	info, err := os.Stat(folder)
	if err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("the folder: %v, %v", info.Mode(), err)
	}
	ForgetRead(folder)
	if _, err := os.Stat(folder); err != nil {
		t.Error("a folder that containers may have a mount of is gone")
	}
}

// connectAs connects as another user: the kernel checks the thread's file system ids, and the thread ends.
func connectAs(user, group int, path string) error {
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked, so the thread ends
		_, _ = unix.SetfsgidRetGid(group)
		_, _ = unix.SetfsuidRetUid(user)
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = unix.Connect(fd, &unix.SockaddrUnix{Name: path})
			_ = unix.Close(fd)
		}
		failed <- err
	}()
	return <-failed
}
