package probe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/anchor"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/arguments"
	"github.com/cniscope/cniscope/pkg/probe/connector"
	"github.com/cniscope/cniscope/test/harness"
)

// BenchmarkForeignPrograms is the reader's CPU time for 1,000 other programs per second.
func BenchmarkForeignPrograms(b *testing.B) {
	ctx, cancel := context.WithCancel(b.Context())
	opened, ended := make(chan error), make(chan unix.Rusage, 1)
	var c *connector.Connector
	var before unix.Rusage
	go func() {
		anchors := anchor.New()
		anchors.Serves("a socket", os.Getppid())
		var err error
		c, err = connector.Open(connector.Options{Processes: 4096, Arguments: arguments.Known, Anchors: anchors, Log: slog.New(slog.DiscardHandler)})
		opened <- err
		if err != nil {
			return
		}
		_ = unix.Getrusage(unix.RUSAGE_THREAD, &before)
		_ = c.Run(ctx, func(event.Event) {})
		var after unix.Rusage
		_ = unix.Getrusage(unix.RUSAGE_THREAD, &after)
		ended <- after
	}()
	if err := <-opened; err != nil {
		b.Skip(err)
	}
	time.Sleep(300 * time.Millisecond) // existing processes are known
	first := c.Stats()
	b.ResetTimer()
	began := time.Now()
	harness.Check(b, runPrograms(b.N, harness.Nothing(b)))
	b.StopTimer()
	took := time.Since(began)
	cancel()
	after, last := <-ended, c.Stats()
	used := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
	programs := last.Looked.Strangers + last.Missed.Strangers - first.Looked.Strangers - first.Missed.Strangers
	b.ReportMetric(float64(used)/float64(max(1, programs)), "cpu-ns/program")
	b.ReportMetric(float64(programs)/took.Seconds(), "programs/s")
	b.ReportMetric(100*float64(used)/float64(took), "%-of-a-core")
	_ = c.Close()
}

func runPrograms(n int, file string) error {
	const atOnce = 20
	loop := exec.Command("/bin/sh", "-c", fmt.Sprintf("while read n; do while [ $n -gt 0 ]; do %s; n=$((n-1)); done; done", file))
	in, err := loop.StdinPipe()
	if err != nil {
		return err
	}
	if err := loop.Start(); err != nil {
		return err
	}
	every := time.NewTicker(atOnce * time.Millisecond)
	defer every.Stop()
	for ; n > 0; n -= atOnce {
		<-every.C
		if _, err := fmt.Fprintln(in, min(n, atOnce)); err != nil {
			return err
		}
	}
	return errors.Join(in.Close(), loop.Wait())
}
