package harness

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestOnePackageAtATimeHasTheHost(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lock")
	first, err := hostWait{file: file, me: "first.test", after: time.Hour, log: io.Discard}.take()
	Check(t, err)
	said, says := io.Pipe()
	type taken struct {
		io.Closer
		err error
	}
	second := make(chan taken, 1)
	go func() {
		f, err := hostWait{file: file, me: "second.test", log: says}.take()
		second <- taken{f, err}
	}()
	line := make([]byte, 200)
	n, err := said.Read(line)
	Check(t, err)
	if got := string(line[:n]); !strings.HasPrefix(got, "second.test waits for "+file+": held by first.test, process ") {
		t.Errorf("said %q", got)
	}
	select {
	case <-second:
		t.Fatal("two have the host")
	default:
	}
	_, err = hostWait{file: file, me: "third.test", after: time.Hour, most: 1, log: io.Discard}.take()
	if err == nil || !strings.Contains(err.Error(), "held by first.test") || !strings.Contains(err.Error(), "-timeout") {
		t.Errorf("beyond its own time: %v", err)
	}
	Check(t, first.Close())
	got := <-second
	Check(t, got.err)
	Check(t, got.Close())
}

func TestNoTestRunsOnTheMainThread(t *testing.T) {
	for range 100 {
		thread := make(chan int)
		go func() {
			runtime.LockOSThread()
			thread <- unix.Gettid()
		}()
		if <-thread == os.Getpid() {
			t.Fatal("a goroutine of a test has the main thread")
		}
	}
}
