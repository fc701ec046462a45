//go:build linux

// Command bench measures cniscope's cost on a node and prints a table of figures and budgets. It needs root and the
// real components (make tools).
//
// BENCH_ONLY selects sections (hooks,agents,streams,middle,idle,pods,detail,tax,compare; burst, scale, beside and
// profile run only if named), BENCH_BURSTS limits the bursts per size, BENCH_IDLE the
// duration of idle, BENCH_PODS the pods of pods and detail and of all ways in compare, BENCH_WAYS the ways of compare
// (commands, auto, always, bpftrace, ig, strace), BENCH_PROGRAM the measured cniscope. beside observes the same pods
// with it and BENCH_BASE, BENCH_TOGETHER at once.
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
	{"detail", onNode(measureDetail)},
	{"tax", measureTax},
	{"compare", onNode(measureCompare)},
	{"burst", onNode(measureBurst)},
	{"scale", measureScale},
	{beside, onNode(measureBeside)},
	{profile, measureProfile},
}

const (
	profile = "profile"
	beside  = "beside"
)

var onlyNamed = []string{"burst", "scale", beside, profile}

type settings struct {
	only []string
	idle time.Duration
	// pods are the numbers of pods per section, detailed per detail mode, compared for all ways together.
	pods, detailed, compared int
	turn                     int
	together                 int // concurrent pods of beside
	bursts                   int // per size at most, with and without
	ways                     []string
	program                  string
	// base is the other one for beside.
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
		var measured []row
		measured, err = section.run(ctx, s)
		rows = append(rows, measured...)
		if ctx.Err() != nil {
			err = errors.New("interrupted")
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", section.name, err)
			break
		}
	}
	over := write(os.Stdout, rows)
	if err == nil && over > 0 {
		return fmt.Errorf("over budget: %d of %d figures", over, len(rows))
	}
	return err
}

func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "==> "+format+"\n", args...) }

func settingsFrom(env func(string) string) (s settings, err error) {
	s = settings{idle: time.Minute, pods: 200, detailed: 30, compared: 300, turn: 5, together: 1, bursts: 60, program: env("BENCH_PROGRAM"), base: env("BENCH_BASE")}
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
		"BENCH_BURSTS": {&s.bursts}, "BENCH_TURN": {&s.turn}, "BENCH_TOGETHER": {&s.together}, "BENCH_PODS": {&s.pods, &s.detailed, &s.compared},
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
