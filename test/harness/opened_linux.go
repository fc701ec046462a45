package harness

import (
	"fmt"
	"os"
	"regexp"
	"testing"

	"golang.org/x/sys/unix"
)

// Listens waits until the unix socket at address listens (SO_ACCEPTCON) in the network of process pid. Its file exists
// before that, from bind(2) on.
func Listens(t testing.TB, pid int, address string) {
	t.Helper()
	entry := regexp.MustCompile(`(?m) 00010000 .* ` + regexp.QuoteMeta(address) + `$`)
	Until(t, address+" listens", func() bool {
		table, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/unix", pid))
		return err == nil && entry.Match(table)
	})
}

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
