//go:build linux

package main

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/probe"
	"github.com/cniscope/cniscope/pkg/probe/arguments"
)

// starts is how often a probe is to be started and stopped, if a machine was booted for that: cniscope.starts=100.
func starts(options string) int { return number(options, "cniscope.starts=") }

// number is that of an option of the kernel; 0 without.
func number(options, key string) int {
	for _, o := range strings.Fields(options) {
		if n, is := strings.CutPrefix(o, key); is {
			times, _ := strconv.Atoi(n)
			return times
		}
	}
	return 0
}

// loads has others in the functions that probes are attached to, until it is killed. Its threads make system calls behind
// the back of Go's scheduler. They yield most of the one CPU to whoever starts: in the functions they are all the same.
func loads() int {
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, 15)
	debug.SetGCPercent(-1)
	runtime.GOMAXPROCS(16)
	loops, err := makeLoops()
	if err != nil {
		return 1
	}
	for _, l := range loops {
		switch l.name {
		case "pipe, write and read", "netlink, question and answer", "unix connection, from connect to close", "flock and unlock", forks:
			beside(l.turn)
		}
	}
	select {}
}

// starter is a probe in a process of its own, as it is on a node: it says when it is attached, and stops when its
// standard input ends.
func starter() int {
	p, err := probe.Open(probe.Options{
		Ring: 1 << 20, Processes: 1024, Arguments: arguments.Known, Depth: 1, Detail: probe.DetailAuto, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("attached", p.Stats().Way)
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := p.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// startAndStop starts probes and stops them while others are in the functions that these are attached to, and processes
// come and go: an old kernel hung when one ended then. Every other one is killed, so that the kernel itself detaches
// what it had. It tells how long each start took, and each end until the process was gone.
func startAndStop(to io.Writer, times int) error {
	if err := install(); err != nil {
		return err
	}
	others := exec.Command(filepath.Join(pluginFolder, "loading"))
	if err := others.Start(); err != nil {
		return err
	}
	defer func() { _ = others.Process.Kill() }()
	for i := range times {
		if err := startOnce(to, i%2 == 1); err != nil {
			return fmt.Errorf("start %d of %d: %w", i+1, times, err)
		}
	}
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return err
	}
	_, err := fmt.Fprintf(to, "\nkernel %s\n\nend\n", unix.ByteSliceToString(u.Release[:]))
	return err
}

func startOnce(to io.Writer, kill bool) error {
	p := &prober{Cmd: exec.Command(filepath.Join(pluginFolder, "starter"))}
	p.Stderr, p.Env = os.Stderr, []string{"PATH=/bin"}
	out, err := p.StdoutPipe()
	if err == nil {
		p.end, err = p.StdinPipe()
	}
	if err != nil {
		return err
	}
	p.says = bufio.NewScanner(out)
	began := time.Now()
	if err := p.Start(); err != nil {
		return err
	}
	way, err := p.until("attached")
	if err != nil {
		return err
	}
	attached, how := time.Now(), "closed"
	if kill {
		how, err = "killed", p.Process.Kill()
	} else {
		err = p.end.Close()
	}
	if err != nil {
		return err
	}
	if err := p.Wait(); err != nil && !kill {
		return err
	}
	_, err = fmt.Fprintf(to, "\nstarted %s %d %s %d\n", way, attached.Sub(began).Milliseconds(), how, time.Since(attached).Milliseconds())
	return err
}
