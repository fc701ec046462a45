package procfs

import (
	"errors"
	"os"
	"strings"
	"time"
)

// ErrHangs says that reading a file did not end in time.
var ErrHangs = errors.New("reading it hangs")

// Memory reads what /proc has of processes' own memory: environment and arguments. A process
// may have mapped that to a file on a mount that does not answer, and a plain read would wait
// for the mount. Make it with NewMemory; it is not safe for concurrent use.
type Memory struct {
	// patience is how long one read may take.
	patience time.Duration
	// hung counts the reads that did not end in time. Each holds a thread until the process,
	// or ours, ends; so once hungMax hang, nothing more is read.
	hung, hungMax int
}

// NewMemory gives each read 100 ms, where microseconds are usual, and reads nothing more once
// eight of them hang: hostile processes cost 0.8 s in all.
func NewMemory() *Memory { return &Memory{patience: 100 * time.Millisecond, hungMax: 8} }

// Environment reads the environment that a process was started with; ErrHangs, or what os.ReadFile says.
func (m *Memory) Environment(pid int) ([]string, error) { return m.strings(path(pid, "environ")) }

// Arguments reads the command line of a process; ErrHangs, or what os.ReadFile says.
func (m *Memory) Arguments(pid int) ([]string, error) { return m.strings(path(pid, "cmdline")) }

// strings splits a file of strings that end with NUL.
func (m *Memory) strings(file string) ([]string, error) {
	data, err := m.read(file)
	if text := strings.TrimSuffix(string(data), "\x00"); text != "" {
		return strings.Split(text, "\x00"), err
	}
	return nil, err
}

func (m *Memory) read(file string) ([]byte, error) {
	if m.hung >= m.hungMax {
		return nil, ErrHangs
	}
	type result struct {
		data []byte
		err  error
	}
	read := make(chan result, 1)
	go func() {
		data, err := os.ReadFile(file)
		read <- result{data, err}
	}()
	late := time.NewTimer(m.patience)
	defer late.Stop()
	select {
	case r := <-read:
		return r.data, r.err
	case <-late.C:
		m.hung++
		return nil, ErrHangs
	}
}
