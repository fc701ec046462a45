//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe"
	"github.com/cniscope/cniscope/pkg/probe/arguments"
)

// A round is one probe; a loop has batches of calls.
const (
	taxRounds  = 15
	taxBatches = 100
	taxCalls   = 10_000
)

const (
	notThere = iota
	beforeCalls
	duringCall
	afterLinger
	notThereAgain
	states
)

// measureTax measures the cost per system call for an unrelated process, in every state of a probe.
func measureTax(ctx context.Context, _ settings) ([]row, error) {
	dir, err := os.MkdirTemp("", "cniscope-bench")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file, err := pluginIn(dir)
	if err != nil {
		return nil, err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var loops [states]loop
	for range taxRounds {
		if err := taxRound(ctx, file, pluginEnvironment(dir), &loops); err != nil {
			return nil, err
		}
	}
	return []row{
		{
			figure: "getppid, nothing attached", value: quantile(loops[notThere].lowest, 0), unit: "ns",
			note: fmt.Sprintf("the lowest of %d batches of %d; median %.1f", taxRounds*taxBatches, taxCalls, median(loops[notThere].medians)),
		},
		loops[notThereAgain].more("nothing attached, once more: the noise", loops[notThere], 0),
		loops[beforeCalls].more("before the first call", loops[notThere], 3),
		loops[duringCall].more("while a call is looked into", loops[notThere], 0),
		loops[afterLinger].more("after the linger", loops[notThere], 3),
	}, nil
}

func taxRound(ctx context.Context, file string, env []string, loops *[states]loop) (err error) {
	loops[notThere].run()
	p, err := probe.Open(probe.Options{
		Ring: 1 << 20, Processes: 1024, Arguments: arguments.Known,
		Detail: probe.DetailAuto, Linger: time.Second, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ran := make(chan error, 1)
	go func() { ran <- p.Run(ctx, func(event.Event) {}) }()
	loops[beforeCalls].run()

	attached := func() time.Duration { return p.Stats().Attached }
	if attached() != 0 {
		return errors.New("another program's CNI calls got in between: measure it on a node where no pods come and go")
	}
	call, err := newPlugin(file, env)
	if err == nil {
		err = call.Start()
	}
	if err != nil {
		return err
	}
	for attached() == 0 && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	loops[duringCall].run()
	if err := call.end(); err != nil {
		return err
	}
	for was := time.Duration(-1); was != attached() && ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
		was = attached()
	}
	loops[afterLinger].run()
	cancel()
	if err := errors.Join(<-ran, p.Close()); err != nil {
		return err
	}
	loops[notThereAgain].run()
	return nil
}

// loop collects the median and minimum of each round's batches, in nanoseconds per call.
type loop struct{ medians, lowest []float64 }

func (l *loop) run() {
	batches := make([]float64, taxBatches)
	for i := range batches {
		began := threadTime()
		for range taxCalls {
			unix.RawSyscallNoError(unix.SYS_GETPPID, 0, 0, 0)
		}
		batches[i] = float64(threadTime()-began) / taxCalls
	}
	l.medians = append(l.medians, median(batches))
	l.lowest = append(l.lowest, quantile(batches, 0))
}

func threadTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) // exists since Linux 2.6
	return time.Duration(t.Nano())
}

// more returns the additional cost per call, by the minima, because a busy machine only slows calls down.
func (l *loop) more(state string, nothing loop, budget float64) row {
	difference := func(rounds []int) float64 {
		return median(drawn(l.medians, rounds)) - median(drawn(nothing.medians, rounds))
	}
	all := upTo(len(l.medians))
	low, high := interval(len(all), difference)
	return row{
		figure: "getppid costs more, " + state, value: quantile(l.lowest, 0) - quantile(nothing.lowest, 0), unit: "ns", budget: budget,
		note: fmt.Sprintf("the lowest of each; medians: %+.1f, 95 %% bootstrap interval over %d rounds: %+.1f to %+.1f", difference(all), len(all), low, high),
	}
}
