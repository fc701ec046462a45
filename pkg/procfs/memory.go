package procfs

import (
	"errors"
	"os"
	"strings"
	"time"
)

// ErrHangs means that a read exceeded its timeout.
var ErrHangs = errors.New("reading it hangs")

// Memory reads processes' environment and arguments. A process may have mapped them to a file on an unresponsive
// mount, where a plain read hangs. It is not safe for concurrent use.
type Memory struct {
	patience time.Duration
	// hung counts timeouts. Each holds a thread, so after hungMax Memory reads nothing more.
	hung, hungMax int
}

// NewMemory allows 100 ms per read (microseconds are normal) and eight timeouts, so hostile processes cost up to 0.8
// s.
func NewMemory() *Memory { return &Memory{patience: 100 * time.Millisecond, hungMax: 8} }

// Environment returns a process's initial environment, ErrHangs, or os.ReadFile's error.
func (m *Memory) Environment(pid int) ([]string, error) { return m.strings(path(pid, "environ")) }

// Arguments returns a process's command line, ErrHangs, or os.ReadFile's error.
func (m *Memory) Arguments(pid int) ([]string, error) { return m.strings(path(pid, "cmdline")) }

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
