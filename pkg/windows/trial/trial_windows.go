// Package trial starts a process and measures its observation, for doctor's self-test.
package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/windows/etw"
	"github.com/cniscope/cniscope/pkg/windows/winproc"
)

// mark is an environment variable of the started process.
const mark = "CNISCOPE_DOCTOR_TRIAL"

// Command is the argument for waiting for the end of standard input.
const Command = "trial"

// Seen is how the process was observed.
type Seen struct {
	Source string        // "etw" or "snapshots"
	Why    string        // why Source is not "etw"
	Took   time.Duration // from the process's start to its report
	Unread string
}

// Run starts this program and observes it with its own session.
func Run(ctx context.Context) (t Seen, err error) {
	system := winproc.NewSystem()
	var teller winproc.Teller = winproc.NewSnapshots(system, func(time.Duration) {})
	t.Source = "snapshots"
	session, err := etw.Open(etw.Options{Name: "cniscope-doctor", Log: slog.New(slog.DiscardHandler)})
	if err == nil {
		defer session.Close()
		teller, t.Source = session, "etw"
	} else {
		t.Why = err.Error()
	}
	ctx, cancel := context.WithCancel(ctx)
	w := watcher{told: make(chan uint32, 1024)}
	ended := make(chan error, 1)
	go func() { ended <- teller.Run(ctx, w) }()
	defer func() { cancel(); _ = <-ended }()

	value := fmt.Sprint(os.Getpid(), "-", time.Now().UnixNano())
	child, end, err := start(value)
	if err != nil {
		return t, fmt.Errorf("starting a process to be seen: %w", err)
	}
	defer end()
	began := time.Now()
	for {
		select {
		case pid := <-w.told:
			if pid == uint32(child) {
				t.Took = time.Since(began)
				t.Unread = unread(ctx, system, pid, mark+"="+value)
				return t, nil
			}
		case err := <-ended:
			ended <- err
			return t, cmp.Or(err, errors.New("the means by which processes are seen ended"))
		case <-ctx.Done():
			return t, fmt.Errorf("a process that was started was not told of: %w", ctx.Err())
		}
	}
}

func start(value string) (pid int, end func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, nil, err
	}
	c := exec.Command(self, Command)
	c.Env = append(os.Environ(), mark+"="+value)
	in, err := c.StdinPipe()
	if err != nil {
		return 0, nil, err
	}
	if err := c.Start(); err != nil {
		return 0, nil, err
	}
	return c.Process.Pid, func() { _ = in.Close(); _ = c.Wait() }, nil
}

func unread(ctx context.Context, system winproc.System, pid uint32, variable string) string {
	p, err := system.Open(pid)
	if err != nil {
		return err.Error()
	}
	defer p.Close()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for {
		told, err := winproc.Told(p)
		switch {
		case err == nil && slices.ContainsFunc(told.Environment, func(v string) bool {
			return strings.EqualFold(v, variable)
		}):
			return ""
		case err == nil:
			return "it was read and is another one"
		case !errors.Is(err, winproc.ErrEarly):
			return err.Error()
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return "there was none until now"
		}
	}
}

type watcher struct{ told chan uint32 }

func (w watcher) Soon(pid uint32, _ int64) {
	select {
	case w.told <- pid:
	default: // another process
	}
}

func (w watcher) Take(c etw.Change) { w.Soon(c.PID, 0) }
func (watcher) Lost(uint64)         {}
func (watcher) Advance(int64)       {}
