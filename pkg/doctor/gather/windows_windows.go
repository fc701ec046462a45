package gather

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/windows"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/etw"
	"github.com/cniscope/cniscope/pkg/probe/table"
	"github.com/cniscope/cniscope/pkg/windows/service"
)

func stateOfHNS(context.Context) (string, error) { return service.State("hns") }

// allPipes lists the names of the machine's pipes; nobody is connected to.
func allPipes(context.Context) (names []string, err error) {
	pattern, err := windows.UTF16PtrFromString(`\\.\pipe\*`)
	if err != nil {
		return nil, err
	}
	var found windows.Win32finddata
	h, err := windows.FindFirstFile(pattern, &found)
	if err != nil {
		return nil, fmt.Errorf("listing pipes: %w", err)
	}
	defer windows.FindClose(h) //nolint:errcheck // it was only read
	for err == nil {
		names = append(names, windows.UTF16ToString(found.FileName[:]))
		err = windows.FindNextFile(h, &found)
	}
	if errors.Is(err, windows.ERROR_NO_MORE_FILES) {
		err = nil
	}
	return names, err
}

// mark is the variable that a process has which is started to be seen.
const mark = "CNISCOPE_DOCTOR_TRIAL"

// try starts a process, this program, and tells how soon it was told of and whether its environment can be read. The
// event tracing session is one of its own: a running cniscope keeps its.
func try(ctx context.Context) (t fact.Trial, err error) {
	system := table.NewSystem()
	var teller table.Teller = table.NewSnapshots(system, func(time.Duration) {})
	t.Source = "snapshots"
	session, err := etw.Open(etw.Options{Name: "cniscope-doctor"})
	if err == nil {
		defer session.Close() //nolint:errcheck // what it told is known
		teller, t.Source = session, "etw"
	} else {
		t.Why = err.Error()
	}
	ctx, cancel := context.WithCancel(ctx)
	w := watcher{told: make(chan uint32, 1024)}
	ended := make(chan error, 1)
	go func() { ended <- teller.Run(ctx, w) }()
	defer func() { cancel(); <-ended }()

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
			return t, cmpErr(err, errors.New("the means by which processes are seen ended"))
		case <-ctx.Done():
			return t, fmt.Errorf("a process that was started was not told of: %w", ctx.Err())
		}
	}
}

func cmpErr(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

// start starts this program so that it lives until end is called: it waits for a standard input that says nothing.
func start(value string) (pid int, end func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, nil, err
	}
	c := exec.Command(self, "trial")
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

// unread says why the environment of a process cannot be read, or does not have a variable that it was given.
func unread(ctx context.Context, system table.System, pid uint32, variable string) string {
	p, err := system.Open(pid)
	if err != nil {
		return err.Error()
	}
	defer p.Close()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for {
		told, err := table.Told(p)
		switch {
		case err == nil && slices.ContainsFunc(told.Environment, func(v string) bool { return strings.EqualFold(v, variable) }):
			return ""
		case err == nil:
			return "it was read and is another one"
		case !errors.Is(err, table.ErrEarly):
			return err.Error()
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return "there was none until now"
		}
	}
}

// watcher takes which processes began.
type watcher struct{ told chan uint32 }

func (w watcher) Soon(pid uint32, _ int64) {
	select {
	case w.told <- pid:
	default: // it is not the one, among so many
	}
}

func (w watcher) Take(c etw.Change) {
	if !c.Present {
		w.Soon(c.PID, 0)
	}
}
func (watcher) Lost(uint64)   {}
func (watcher) Advance(int64) {}
