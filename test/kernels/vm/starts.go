//go:build linux

package main

import (
	"fmt"
	"io"
	"log/slog"
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
func starts(options string) int {
	for _, o := range strings.Fields(options) {
		if n, is := strings.CutPrefix(o, "cniscope.starts="); is {
			times, _ := strconv.Atoi(n)
			return times
		}
	}
	return 0
}

// loads has others in the functions that probes are attached to, until it is killed. Its threads make system calls behind
// the back of Go's scheduler.
func loads() int {
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

// startAndStop starts probes and stops them while others are in the functions that these are attached to, and processes
// come and go: an old kernel hung when one ended then. It tells how long each start and each stop took.
func startAndStop(to io.Writer, times int) error {
	if err := install(); err != nil {
		return err
	}
	others := exec.Command(filepath.Join(pluginFolder, "loading"))
	if err := others.Start(); err != nil {
		return err
	}
	defer func() { _ = others.Process.Kill() }()
	for range times {
		began := time.Now()
		p, err := probe.Open(probe.Options{
			Ring: 1 << 20, Processes: 1024, Arguments: arguments.Known, Depth: 1, Detail: probe.DetailAuto, Log: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			return err
		}
		opened, way := time.Now(), p.Stats().Way
		if err := p.Close(); err != nil {
			return err
		}
		fmt.Fprintf(to, "\nstarted %s %d %d\n", way, opened.Sub(began).Milliseconds(), time.Since(opened).Milliseconds())
	}
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return err
	}
	_, err := fmt.Fprintf(to, "\nkernel %s\n\nend\n", unix.ByteSliceToString(u.Release[:]))
	return err
}
