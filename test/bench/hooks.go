//go:build linux

package main

import (
	"context"
	"errors"
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
	return probed(ctx, probe.Options{Ring: 1 << 20}, func(_ context.Context, h *hooks) ([]row, error) {
		rows, err := h.untracked()
		if err != nil {
			return nil, err
		}
		tracked, err := h.tracked()
		return append(rows, tracked...), err
	})
}

// probed runs f with a probe while the kernel's statistics are on.
func probed(ctx context.Context, o probe.Options, f func(context.Context, *hooks) ([]row, error)) (rows []row, err error) {
	stats, err := ebpf.EnableStats(unix.BPF_STATS_RUN_TIME)
	if err != nil {
		return nil, fmt.Errorf("switching on the kernel's BPF statistics: %w", err)
	}
	defer stats.Close()
	o.Processes, o.Arguments, o.Depth, o.Log = 1024, arguments.Known, 1, slog.New(slog.DiscardHandler)
	p, err := probe.Open(o)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	ctx, cancel := context.WithCancel(ctx)
	ran := make(chan error, 1)
	go func() { ran <- p.Run(ctx, func(event.Event) {}) }()
	defer func() {
		cancel()
		err = errors.Join(err, <-ran)
	}()
	return f(ctx, &hooks{probe: p})
}

type cost struct{ single, rounds []float64 }

// costs are those of one process, by hook.
type costs map[string]*cost

func newCosts(more ...string) costs {
	c := costs{}
	for _, name := range append(more, "exec", "fork", "exit") {
		c[name] = &cost{}
	}
	return c
}

// add adds a round.
func (c costs) add(round costs) {
	for name, r := range round {
		c[name].single = append(c[name].single, r.single...)
		c[name].rounds = append(c[name].rounds, mean(r.single))
	}
}

func (c *cost) row(figure string, budget float64) row {
	return row{
		figure: figure, value: median(c.rounds), unit: "µs", budget: budget,
		note: fmt.Sprintf("lowest round %.2f, highest %.2f; single runs: min %.2f, median %.2f, p99 %.2f; n = %d",
			quantile(c.rounds, 0), quantile(c.rounds, 1), quantile(c.single, 0), median(c.single), quantile(c.single, 0.99), len(c.single)),
	}
}

// sample runs one process and adds its hooks' time. A sample with another program's activity is dropped.
func (h *hooks) sample(into costs, f func() error) error {
	before, began := h.probe.Stats().Programs, time.Now()
	if err := f(); err != nil {
		return err
	}
	if c := into["wall"]; c != nil {
		c.single = append(c.single, float64(time.Since(began))/1e3)
	}
	after := h.probe.Stats().Programs
	for name, c := range into {
		if n := after[name].Runs - before[name].Runs; n == 1 {
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
	cost   costs
}

func newKind(figure string, budget float64, env []string, user uint32) *kind {
	return &kind{figure, budget, env, user, newCosts("wall")}
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
			round := newCosts()
			for range hookExecs {
				if err := h.sample(round, func() error { return runTrue(k.env, k.user) }); err != nil {
					return nil, err
				}
			}
			k.cost.add(round)
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

func runTrue(env []string, user uint32) error {
	as := &syscall.SysProcAttr{}
	if user > 0 {
		as.Credential = &syscall.Credential{Uid: user, Gid: user}
	}
	pid, err := syscall.ForkExec("/bin/true", []string{"true"}, &syscall.ProcAttr{Env: env, Sys: as})
	if err != nil {
		return fmt.Errorf("running true: %w", err)
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
