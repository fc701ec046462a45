//go:build linux

package main

import (
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe"
	"github.com/cniscope/cniscope/pkg/probe/arguments"
	"github.com/cniscope/cniscope/pkg/record"
)

type watcher struct {
	*probe.Probe
	way    string
	mu     sync.Mutex
	events []event.Event
	ran    chan error
}

func watch(ctx context.Context, way string) (*watcher, error) {
	p, err := probe.Open(probe.Options{
		Ring: 4 << 20, Processes: 1024, Arguments: arguments.Known, Depth: 1, Detail: probe.DetailAlways, Way: way,
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return nil, fmt.Errorf("by %s: %w", way, err)
	}
	w := &watcher{Probe: p, way: way, ran: make(chan error, 1)}
	go func() { w.ran <- p.Run(ctx, w.take) }()
	return w, nil
}

func (w *watcher) take(e event.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, e)
}

func (w *watcher) ready() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.events, func(e event.Event) bool {
		x, is := e.Body.(*event.Exec)
		return is && x.InFlight
	})
}

// compare calls every plugin repeatedly under both ways at once and prints both recordings.
func compare(to io.Writer, _ string, rounds int) error {
	runtime.GOMAXPROCS(12) // for both readers and blocking calls
	world, err := makeWorld()
	if err != nil {
		return err
	}
	early, stdin, err := hang()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var watchers []*watcher
	for _, way := range []string{byFunction, bySystemCall} {
		w, err := watch(ctx, way)
		if err != nil {
			return err
		}
		watchers = append(watchers, w)
	}
	all := func(is func(*watcher) bool) {
		for slices.ContainsFunc(watchers, func(w *watcher) bool { return !is(w) }) {
			time.Sleep(20 * time.Millisecond)
		}
	}
	all((*watcher).ready)
	for range rounds {
		if err := unix.Flock(int(world.lock.Fd()), unix.LOCK_EX); err != nil {
			return err
		}
		go world.unlock()
		if _, err := callAll(); err != nil {
			return err
		}
	}
	err = stdin.Close()
	_ = early.Wait() // exits with 4
	all(func(w *watcher) bool { return w.Stats().Tracked == 0 })
	cancel()
	for _, w := range watchers {
		err = errors.Join(err, <-w.ran, w.tell(to), w.Close())
	}
	return err
}

func (w *watcher) tell(to io.Writer) error {
	stats := w.Stats()
	for name, program := range stats.Programs {
		if program.Missed > 0 {
			fmt.Fprintf(to, "\nmissed %s, by %s, %d times\n", name, w.way, program.Missed)
		}
	}
	for why, n := range stats.Lost {
		if n > 0 {
			fmt.Fprintf(to, "\nmissed %s, by %s, %d times\n", why, w.way, n)
		}
	}
	packed, err := w.recording()
	if err != nil {
		return err
	}
	for line := range slices.Chunk([]byte(packed), 1000) {
		if _, err := fmt.Fprintf(to, "\nrecorded %s %s\n", w.way, line); err != nil {
			return err
		}
	}
	return nil
}

// recording returns the events, compressed and as text.
func (w *watcher) recording() (string, error) {
	var packed strings.Builder
	encoded := base64.NewEncoder(base64.StdEncoding, &packed)
	compressed := gzip.NewWriter(encoded)
	r, err := record.NewWriter(compressed, record.Host())
	if err != nil {
		return "", err
	}
	for _, e := range w.events {
		if err := r.Write(e); err != nil {
			return "", err
		}
	}
	err = errors.Join(r.Close(), compressed.Close(), encoded.Close())
	return packed.String(), err
}
