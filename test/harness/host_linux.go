package harness

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// hostLock differs from the product's own lock file.
const hostLock = "/run/cniscope-host-tests.lock"

// Host is Run for TestMain of a package that observes all processes of the machine, or runs pods on it. As root, such
// packages run one at a time: the others wait for a file lock, and name its holder on standard error. Host takes no
// lock without root, where the tests skip, or in a copy of the test program that a test starts: only the go command
// passes -test.paniconexit0. A program with other modes than its tests calls Host only to run the tests.
func Host(tests interface{ Run() int }) (code int) {
	flag.Parse()
	if os.Geteuid() != 0 || flag.Lookup("test.paniconexit0").Value.String() != "true" {
		return tests.Run()
	}
	w := hostWait{file: hostLock, me: filepath.Base(os.Args[0]), after: 3 * time.Second, log: os.Stderr}
	if timeout, is := flag.Lookup("test.timeout").Value.(flag.Getter); is {
		w.most, _ = timeout.Get().(time.Duration)
	}
	held, err := w.take()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer held.Close()
	return tests.Run()
}

// The main goroutine keeps the main thread, whose namespaces /proc/self/ns shows.
func init() { runtime.LockOSThread() }

type hostWait struct {
	file, me string
	// after is the wait before it names the holder.
	after time.Duration
	// most is -timeout; 0: forever. The timer of package testing starts after the wait, but the go command kills
	// a test program a minute after -timeout without naming the lock.
	most time.Duration
	log  io.Writer
}

func (w hostWait) take() (*os.File, error) {
	f, err := os.OpenFile(w.file, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot lock the host for tests: %w", err)
	}
	locked := make(chan error, 1)
	go func() { locked <- ignoringEINTR(func() error { return unix.Flock(int(f.Fd()), unix.LOCK_EX) }) }()
	var over <-chan time.Time
	if w.most > 0 {
		over = time.After(w.most)
	}
	for say := time.After(w.after); ; {
		select {
		case err := <-locked:
			if err == nil {
				_, err = f.WriteAt(fmt.Appendf(nil, "%-100s", fmt.Sprintf("%s, process %d", w.me, os.Getpid())), 0)
			}
			return f, err
		case <-say:
			fmt.Fprintf(w.log, "%s waits for %s: held by %s\n", w.me, w.file, w.holder())
		case <-over:
			go func() { _, _ = <-locked, f.Close() }()
			return nil, fmt.Errorf("%s waited %s for %s, held by %s; run fewer packages at a time (-p 2), or set a longer -timeout",
				w.me, w.most, w.file, w.holder())
		}
	}
}

func (w hostWait) holder() string {
	name, _ := os.ReadFile(w.file)
	return strings.TrimSpace(string(name))
}

func ignoringEINTR(call func() error) (err error) {
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		err = call()
	}
	return err
}
