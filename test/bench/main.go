//go:build linux

// Command bench measures what cniscope costs a node and prints one table: each figure,
// its budget, and whether it holds. It needs root and the real parts (make tools).
//
// BENCH_ONLY names the sections to run (hooks,agents,streams,middle,idle,pods,detail,tax,compare; burst, scale, beside and profile only
// if they are named), BENCH_BURSTS how many bursts of each size are run with cniscope and how many without,
// BENCH_IDLE says how long an idle cniscope is watched, BENCH_PODS how many pods are run
// in each of pods and detail, and in compare under all ways of watching together, BENCH_WAYS which of these there are (commands, auto, always,
// bpftrace, ig, strace: all), BENCH_PROGRAM the cniscope to be measured in place of
// that of this source: what one of before takes, say. With beside that and BENCH_BASE observe the same pods.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// sections in the order they are run.
var sections = []struct {
	name string
	run  func(context.Context, settings) ([]row, error)
}{
	{"hooks", measureHooks},
	{"agents", measureAgents},
	{"streams", measureStreams},
	{"middle", measureMiddle},
	{"idle", measureIdle},
	{"pods", measurePods},
	{"detail", measureDetail},
	{"tax", measureTax},
	{"compare", measureCompare},
	{"burst", measureBurst},
	{"scale", measureScale},
	{beside, measureBeside},
	{profile, measureProfile},
}

const (
	profile = "profile"
	beside  = "beside"
)

// onlyNamed are the sections that are only run where they are asked for.
var onlyNamed = []string{"burst", "scale", beside, profile}

// settings say how long to measure.
type settings struct {
	only []string
	idle time.Duration
	// pods are how many are run for what they cost, detailed in each detail mode, compared
	// under all ways of watching together.
	pods, detailed, compared int
	// turn is how many pods in a row are timed under a way of watching, at most, before the next has its turn.
	turn   int
	bursts int // how many of each size, with and without
	// ways are those of watching that are compared.
	ways []string
	// program is the cniscope that is measured.
	program string
	// base is another, for beside.
	base string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	switch filepath.Base(os.Args[0]) {
	case pluginName:
		err = asPlugin()
	case agentName:
		err = asAgent()
	case emptyName:
		err = asEmpty(ctx)
	default:
		err = bench(ctx)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func bench(ctx context.Context) error {
	if os.Geteuid() != 0 {
		return errors.New("needs root, for BPF, containerd and network namespaces: sudo make bench")
	}
	s, err := settingsFrom(os.Getenv)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "cniscope-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if s.program == "" {
		if s.program, err = build(ctx, dir); err != nil {
			return err
		}
	}
	fmt.Println(machine())
	var rows []row
	for _, section := range sections {
		if !slices.Contains(s.only, section.name) && (len(s.only) > 0 || slices.Contains(onlyNamed, section.name)) {
			continue
		}
		say("measuring %s", section.name)
		measured, err := section.run(ctx, s)
		if err != nil {
			return fmt.Errorf("%s: %w", section.name, err)
		}
		rows = append(rows, measured...)
	}
	if over := write(os.Stdout, rows); over > 0 {
		return fmt.Errorf("over budget: %d of %d figures", over, len(rows))
	}
	return nil
}

// say tells on standard error how far it is.
func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "==> "+format+"\n", args...) }

func settingsFrom(env func(string) string) (s settings, err error) {
	s = settings{idle: time.Minute, pods: 200, detailed: 30, compared: 300, turn: 5, bursts: 8, program: env("BENCH_PROGRAM"), base: env("BENCH_BASE")}
	if v := env("BENCH_ONLY"); v != "" {
		s.only = strings.Split(v, ",")
	}
	if slices.Contains(s.only, beside) && s.base == "" {
		return s, errors.New("BENCH_BASE is empty: BENCH_ONLY=beside wants another cniscope to compare with")
	}
	if v := env("BENCH_WAYS"); v != "" {
		s.ways = strings.Split(v, ",")
	}
	if v := env("BENCH_IDLE"); v != "" {
		if s.idle, err = time.ParseDuration(v); err != nil {
			return s, fmt.Errorf("BENCH_IDLE: %w", err)
		}
	}
	for name, of := range map[string][]*int{
		"BENCH_BURSTS": {&s.bursts}, "BENCH_TURN": {&s.turn}, "BENCH_PODS": {&s.pods, &s.detailed, &s.compared},
	} {
		v := env(name)
		if v == "" {
			continue
		}
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 {
			return s, fmt.Errorf("%s is %q: a number above 0 is wanted", name, v)
		}
		for _, number := range of {
			*number = n
		}
	}
	return s, nil
}
