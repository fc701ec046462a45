package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cniscope/cniscope/pkg/nri"
)

// diary is what happened, in its order.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) note(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, line)
}

func (d *diary) check(t *testing.T, want ...string) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Equal(d.lines, want) {
		t.Errorf("%q, want %q", d.lines, want)
	}
}

// steps has something slow done in every phase, noted when it is done.
func (d *diary) steps(l *life) {
	for p, name := range []string{"sources", "flush", "sinks", "node"} {
		l.at(phase(p), name, func(context.Context) {
			time.Sleep(time.Duration(phases-phase(p)) * time.Millisecond)
			d.note(name)
		})
	}
	l.start("events", func(ctx context.Context) {
		<-ctx.Done()
		time.Sleep(time.Second)
		d.note("events")
	})
}

func TestTheNodeIsLetGoOfWhenAllElseHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		ctx, cancel := context.WithCancel(t.Context())
		l := newLife(ctx, slog.New(slog.DiscardHandler))
		d.steps(l)
		cancel()
		if err := errors.Join(l.end(), l.end()); err != nil {
			t.Error(err)
		}
		d.check(t, "sources", "events", "flush", "sinks", "node")
	})
}

func TestWhatDoesNotEndIsNamedAndTheEndIsBounded(t *testing.T) {
	for stuck, want := range map[phase][]string{
		stopSources: {"sources", "events", "flush", "sinks"},
		flushOpen:   {"sources", "events", "flush", "sinks"},
		closeSinks:  {"sources", "events", "flush", "sinks"},
	} {
		t.Run(fmt.Sprint(stuck), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var d diary
				var log strings.Builder
				l := newLife(t.Context(), slog.New(slog.NewTextHandler(&log, nil)))
				d.steps(l)
				forever := make(chan struct{})
				defer close(forever)
				l.at(stuck, "a disk that hangs", func(context.Context) { <-forever })
				began := time.Now()
				err := l.end()
				if took := time.Since(began); took < stuck.patience() || took > ShutdownMax() {
					t.Errorf("it took %s", took)
				}
				if err == nil || !strings.Contains(err.Error(), "a disk that hangs") || !strings.Contains(log.String(), "for=\"[a disk that hangs]\"") {
					t.Errorf("%v; %s", err, log.String())
				}
				// The others end in their order, and the node is let go of by the kernel,
				// together with what hangs.
				d.check(t, want...)
			})
		})
	}
	if d := ShutdownMax() + 5*time.Second; d >= 30*time.Second {
		t.Errorf("the kubelet waits for 30 s, the end takes up to %s", d)
	}
}

func TestOnlyTheNextContainerdsCniscopeIsWaitedFor(t *testing.T) {
	for _, c := range []struct {
		why  error
		want bool
	}{{nil, false}, {errors.New("broken"), false}, {fmt.Errorf("x: %w", nri.ErrRuntimeGone), true}} {
		l := newLife(t.Context(), slog.New(slog.DiscardHandler))
		l.stop(c.why)
		if l.successor() != c.want {
			t.Errorf("%v: %v", c.why, l.successor())
		}
	}
}
