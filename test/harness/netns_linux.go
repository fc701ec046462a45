package harness

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Within calls do on a thread in a network namespace. The thread ends with it.
func Within(netns string, do func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // stays locked, so that the thread ends
		f, err := os.Open(netns)
		if err == nil {
			err = unix.Setns(int(f.Fd()), unix.CLONE_NEWNET)
			_ = f.Close()
		}
		if err == nil {
			err = do()
		}
		done <- err
	}()
	return <-done
}
