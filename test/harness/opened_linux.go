package harness

import (
	"testing"

	"golang.org/x/sys/unix"
)

// Opened reports whether something opens a file during act. O_PATH does not count.
func Opened(t *testing.T, file string, act func()) bool {
	t.Helper()
	watch, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	Check(t, err)
	defer unix.Close(watch)
	_, err = unix.InotifyAddWatch(watch, file, unix.IN_OPEN)
	Check(t, err)
	act()
	n, _ := unix.Read(watch, make([]byte, 4096))
	return n > 0
}
