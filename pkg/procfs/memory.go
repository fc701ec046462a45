package procfs

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// ErrHangs means that a read timed out.
var ErrHangs = errors.New("reading it hangs")

// ErrCut means that more exists.
var ErrCut = errors.New("it is too long")

// open spares a poller's five system calls.
func open(file string) (*os.File, error) {
	fd, err := syscall.Open(file, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: file, Err: err}
	}
	return os.NewFile(uintptr(fd), file), nil
}

// readMost reads up to most bytes; with ErrCut there are more.
func readMost(file string, most int64) ([]byte, error) {
	fd, err := syscall.Open(file, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: file, Err: err}
	}
	defer syscall.Close(fd)
	for data := make([]byte, 0, 4<<10); ; data = slices.Grow(data, 1) {
		n, err := syscall.Read(fd, data[len(data):cap(data)])
		data = data[:len(data)+max(n, 0)]
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return data, &os.PathError{Op: "read", Path: file, Err: err}
		case int64(len(data)) > most:
			return data[:most], ErrCut
		case n == 0:
			return data, nil
		}
	}
}

// Patience bounds reads that may hang on a mount: each lasts up to Each. While Most of them hold a thread, Within reads
// nothing.
type Patience struct {
	Each time.Duration
	Most int32
	hung atomic.Int32
}

// Within returns what read returns, or ErrHangs. A hanging read continues.
func Within[T any](p *Patience, read func() (T, error)) (value T, err error) {
	if p.hung.Load() >= p.Most {
		return value, ErrHangs
	}
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := read()
		done <- result{value, err}
	}()
	late := time.NewTimer(p.Each)
	defer late.Stop()
	select {
	case r := <-done:
		return r.value, r.err
	case <-late.C:
		p.hung.Add(1)
		go func() {
			<-done
			p.hung.Add(-1)
		}()
		return value, ErrHangs
	}
}

// Memory reads environments and arguments, which may be mapped from a hanging mount.
type Memory struct{ patience Patience }

// memoryMax bounds bytes: a process may declare all memory its environment (PR_SET_MM_MAP). execve allows 2 MiB;
// pods have 10 KiB.
const memoryMax = 1 << 20

// NewMemory allows 100 ms per read (normal: microseconds) and eight hanging reads.
func NewMemory() *Memory { return &Memory{patience: Patience{Each: 100 * time.Millisecond, Most: 8}} }

// Environment returns the initial environment, ErrHangs, ErrCut, or os.ReadFile's error.
func (m *Memory) Environment(pid int) ([]string, error) { return m.strings(path(pid, "environ")) }

// Arguments returns the command line; errors as for Environment.
func (m *Memory) Arguments(pid int) ([]string, error) { return m.strings(path(pid, "cmdline")) }

func (m *Memory) strings(file string) ([]string, error) {
	data, err := Within(&m.patience, func() ([]byte, error) { return readMost(file, memoryMax) })
	return Split(data), err
}

// Split splits strings that end with NUL, as in cmdline and environ.
func Split(b []byte) []string {
	b = bytes.TrimSuffix(b, []byte{0})
	if len(b) == 0 {
		return nil
	}
	return strings.Split(string(b), "\x00")
}
