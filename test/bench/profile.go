//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/scope"
)

var profiles = []struct{ title, file, sample string }{
	{"CPU, by function", "cpu", "cpu"},
	{"allocated", "allocs", "alloc_space"},
	{"held at the end", "heap", "inuse_space"},
}

// measureProfile runs pods with a profiled cniscope and prints the profiles. It runs only if named, since profiling
// costs time.
func measureProfile(ctx context.Context, s settings) (rows []row, err error) {
	dir, err := os.MkdirTemp("", "cniscope-profile")
	if err != nil {
		return nil, err
	}
	if s.program, err = scope.Build(ctx, dir, "profile"); err != nil {
		return nil, err
	}
	if err := os.Setenv("CNISCOPE_PROFILE", dir); err != nil {
		return nil, err
	}
	n, err := startObserved(ctx, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	began, err := cpuTime(n.observer.PID())
	if err != nil {
		return nil, err
	}
	if err := n.many(ctx, s.pods, 1); err != nil {
		return nil, err
	}
	if err := pause(ctx, settled); err != nil {
		return nil, err
	}
	now, err := cpuTime(n.observer.PID())
	if err != nil {
		return nil, err
	}
	if err := written(ctx, n.observer.PID(), filepath.Join(dir, "done")); err != nil {
		return nil, err
	}
	for _, p := range profiles {
		top := exec.CommandContext(ctx, "go", "tool", "pprof", "-top", "-nodecount=40", "-sample_index="+p.sample, s.program, filepath.Join(dir, p.file))
		out, err := top.CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("go tool pprof: %w\n%s", err, out)
		}
		fmt.Printf("%s (%s):\n%s\n", p.title, filepath.Join(dir, p.file), out)
	}
	held, err := os.ReadFile(filepath.Join(dir, "memory"))
	if err != nil {
		return nil, err
	}
	fmt.Printf("what Go has of the system, in bytes:\n%s\n", held)
	return []row{{figure: "CPU of cniscope while profiled, a pod", value: milli(now-began) / float64(s.pods), unit: "ms", note: dir}}, nil
}

// written requests the profile's end and waits for the file.
func written(ctx context.Context, pid int, done string) error {
	if err := unix.Kill(pid, unix.SIGUSR2); err != nil {
		return err
	}
	for {
		if _, err := os.Stat(done); err == nil {
			return nil
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}
