//go:build linux

package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe"
	"github.com/cniscope/cniscope/pkg/probe/arguments"
)

// A repeated measurement; kinds alternate, so that disturbances hit all.
const (
	hookRounds = 15
	hookExecs  = 200
)

type hooks struct {
	probe *probe.Probe
}

func measureHooks(ctx context.Context, _ settings) ([]row, error) {
	stats, err := ebpf.EnableStats(unix.BPF_STATS_RUN_TIME)
	if err != nil {
		return nil, fmt.Errorf("switching on the kernel's BPF statistics: %w", err)
	}
	defer stats.Close()
	p, err := probe.Open(probe.Options{
		Ring: 1 << 20, Processes: 1024, Arguments: arguments.Known, Depth: 1, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	defer p.Close()
	ctx, cancel := context.WithCancel(ctx)
	ran := make(chan error, 1)
	go func() { ran <- p.Run(ctx, func(event.Event) {}) }()
	h := &hooks{probe: p}
	rows, err := h.untracked()
	if err == nil {
		var tracked []row
		tracked, err = h.tracked()
		rows = append(rows, tracked...)
	}
	cancel()
	if ended := <-ran; err == nil {
		err = ended
	}
	return rows, err
}

type cost struct{ single, rounds []float64 }

func (c *cost) row(figure string, budget float64) row {
	return row{
		figure: figure, value: median(c.rounds), unit: "µs", budget: budget,
		note: fmt.Sprintf("lowest round %.2f, highest %.2f; single runs: min %.2f, median %.2f, p99 %.2f; n = %d",
			quantile(c.rounds, 0), quantile(c.rounds, 1), quantile(c.single, 0), median(c.single), quantile(c.single, 0.99), len(c.single)),
	}
}

// sample runs one process and adds its hooks' time. A sample with another program's activity is dropped.
func (h *hooks) sample(into map[string]*cost, runs map[string]uint64, f func() error) error {
	before, began := h.probe.Stats().Programs, time.Now()
	if err := f(); err != nil {
		return err
	}
	if c := into["wall"]; c != nil {
		c.single = append(c.single, float64(time.Since(began))/1e3)
	}
	after := h.probe.Stats().Programs
	for name, want := range runs {
		c := into[name]
		if n := after[name].Runs - before[name].Runs; n == want {
			c.single = append(c.single, float64(after[name].Time-before[name].Time)/float64(n)/1e3)
		}
	}
	return nil
}

type kind struct {
	figure string
	budget float64 // µs; 0: none
	env    []string
	user   uint32
	cost   map[string]*cost
}

func newKind(figure string, budget float64, env []string, user uint32) *kind {
	return &kind{figure, budget, env, user, map[string]*cost{"exec": {}, "fork": {}, "exit": {}}}
}

func (h *hooks) untracked() ([]row, error) {
	// A single-threaded child, because a Go program would fork threads.
	small, large := environment(35, 2560), environment(200, 20_000)
	kinds := []*kind{
		newKind("exec hook, untracked, 35 variables", 3, small, 0),
		newKind("exec hook, untracked, 200 variables", 12, large, 0),
		newKind("exec hook, unprivileged, 200 variables", 0, large, 65534),
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for range hookRounds {
		for _, k := range kinds {
			round := map[string]*cost{"exec": {}, "fork": {}, "exit": {}}
			for range hookExecs {
				err := h.sample(round, map[string]uint64{"exec": 1, "fork": 1, "exit": 1}, func() error { return k.run("/bin/true") })
				if err != nil {
					return nil, err
				}
			}
			for name, c := range round {
				k.cost[name].single = append(k.cost[name].single, c.single...)
				k.cost[name].rounds = append(k.cost[name].rounds, mean(c.single))
			}
		}
	}
	var rows []row
	for _, k := range kinds {
		rows = append(rows, k.cost["exec"].row(k.figure, k.budget))
	}
	return append(rows,
		kinds[0].cost["fork"].row("fork hook, untracked", 0),
		kinds[0].cost["exit"].row("exit hook, untracked", 0)), nil
}

func (k *kind) run(program string) error {
	pid, err := syscall.ForkExec(program, []string{program}, &syscall.ProcAttr{
		Env: k.env, Sys: &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: k.user, Gid: k.user}},
	})
	if err != nil {
		return fmt.Errorf("running %s: %w", program, err)
	}
	_, err = syscall.Wait4(pid, nil, 0, nil)
	return os.NewSyscallError("wait4", err)
}

// environment returns n variables of so many bytes with NULs, named like Kubernetes services.
func environment(n, bytes int) []string {
	const letters = "/abcdefghijklmnopqrstuvwxyz.0123456789:ABCDEFGHIJKLMNOPQRSTUVWXYZ-_"
	random := rand.New(rand.NewPCG(1, 2))
	env := make([]string, n)
	for i := range env {
		v := fmt.Appendf(nil, "SVC_%03d_PORT_%d_TCP_ADDR=", i, random.IntN(65536))
		for want := bytes*(i+1)/n - bytes*i/n - 1; len(v) < want; {
			v = append(v, letters[random.IntN(len(letters))])
		}
		env[i] = string(v)
	}
	return env
}
