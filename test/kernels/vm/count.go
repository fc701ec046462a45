//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe"
	"github.com/cniscope/cniscope/pkg/probe/arguments"
)

// batches per loop, of which the cheapest counts. A batch is short against the kernel's tick of 4
// ms.
const batches = 60

type counted struct {
	State string             `json:"state"`
	Loops map[string]float64 `json:"loops"`
}

// count measures each loop's cost without a probe and in every state of one, in instructions: one nanosecond each
// (-icount shift=0).
func count(to io.Writer, _ string, _ int) error {
	// Loops bypass Go's scheduler, so each occupies a CPU slot forever; garbage collection would wait for them.
	debug.SetGCPercent(-1)
	runtime.GOMAXPROCS(8)
	loops, err := makeLoops()
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	tell := func(state string) error {
		costs, err := measure(loops)
		if err != nil {
			return err
		}
		return line(to, "counted", counted{State: state, Loops: costs})
	}
	for _, state := range []string{"warm", "nothing", "nothing again"} {
		if err := tell(state); err != nil {
			return err
		}
	}
	way, err := throughStates(tell)
	if err == nil && way == byFunction {
		err = inACall(tell)
	}
	if err == nil {
		_, err = fmt.Fprintf(to, "\nway %s\n", way)
	}
	return err
}

const (
	byFunction   = "functions"
	bySystemCall = "system-calls"
)

func measure(loops []loop) (map[string]float64, error) {
	costs := map[string]float64{}
	for _, l := range loops {
		lowest := int64(1 << 62)
		if l.ready != nil {
			if err := l.ready(); err != nil {
				return nil, err
			}
		}
		for range batches {
			began := clock.Monotonic()
			for range l.turns {
				l.turn()
			}
			lowest = min(lowest, clock.Monotonic()-began)
		}
		costs[l.name] = float64(lowest) / float64(l.turns)
	}
	return costs, nil
}

// prober is a process with a probe. It is stopped during measurements, so that its reader is not counted.
type prober struct {
	*exec.Cmd
	says *bufio.Scanner
	end  io.Closer // its standard input
}

// startProber starts a program that runs until its standard input ends.
func startProber(name string, args ...string) (*prober, error) {
	p := &prober{Cmd: exec.Command(filepath.Join(pluginFolder, name), args...)}
	p.Stderr, p.Env = os.Stderr, []string{"PATH=/bin"}
	out, err := p.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if p.end, err = p.StdinPipe(); err != nil {
		return nil, err
	}
	p.says = bufio.NewScanner(out)
	return p, p.Start()
}

// startProbe starts a probe with the given way; empty selects the best.
func startProbe(way string) (*prober, string, error) {
	p, err := startProber("prober", way)
	if err != nil {
		return nil, "", err
	}
	way, err = p.until("ready")
	return p, way, err
}

func (p *prober) until(what string) (more string, err error) {
	for p.says.Scan() {
		if said, is := strings.CutPrefix(p.says.Text(), what); is {
			return strings.TrimSpace(said), nil
		}
	}
	return "", fmt.Errorf("the prober ended before it said %q", what)
}

func (p *prober) stopped(do func() error) error {
	if err := p.Process.Signal(unix.SIGSTOP); err != nil {
		return err
	}
	if _, err := unix.Wait4(p.Process.Pid, nil, unix.WUNTRACED, nil); err != nil {
		return err
	}
	return errors.Join(do(), p.Process.Signal(unix.SIGCONT))
}

func throughStates(tell func(state string) error) (way string, err error) {
	p, way, err := startProbe("")
	if err != nil {
		return "", err
	}
	in := func(state string) error { return p.stopped(func() error { return tell(state) }) }
	if err := in("before"); err != nil {
		return "", err
	}
	if err := p.duringACall(func() error { return in("in a call") }); err != nil {
		return "", err
	}
	if _, err := p.until("not looking"); err != nil {
		return "", err
	}
	return way, errors.Join(in("after"), p.end.Close(), p.Wait())
}

func inACall(tell func(state string) error) error {
	p, _, err := startProbe(bySystemCall)
	if err != nil {
		return err
	}
	err = p.duringACall(func() error { return p.stopped(func() error { return tell("in a call, by system calls") }) })
	return errors.Join(err, p.end.Close(), p.Wait())
}

const mostFiles = 1024

func (p *prober) duringACall(do func() error) error {
	// Inherited connections would make this process the plugin's agent.
	for fd := 3; fd < mostFiles; fd++ { // Linux 5.10's close_range lacks the flag
		unix.CloseOnExec(fd)
	}
	plugin, stdin, err := hang()
	if err != nil {
		return err
	}
	if _, err := p.until("looking"); err != nil {
		return err
	}
	err = errors.Join(do(), stdin.Close())
	_ = plugin.Wait() // the hung plugin exits with an error
	return err
}

// probes runs a probe until standard input ends, and prints its states.
func probes() int {
	p, err := probe.Open(probe.Options{
		Ring: 1 << 20, Processes: 1024, Arguments: arguments.Known, Depth: 1,
		Way: os.Args[1], Detail: probe.DetailAuto, Linger: 100 * time.Millisecond, MinSpan: time.Millisecond,
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- p.Run(ctx, says) }()
	fmt.Println("ready", p.Stats().Way)
	_, _ = io.Copy(io.Discard, os.Stdin)
	cancel()
	if err := errors.Join(<-ran, p.Close()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// says prints when system-call tracing turns on and off.
func says(e event.Event) {
	if d, is := e.Body.(*event.Detail); is {
		fmt.Println(map[bool]string{true: "looking", false: "not looking"}[d.On])
	}
}
