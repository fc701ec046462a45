package node

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/lock"
	"github.com/cniscope/cniscope/pkg/record"
	"github.com/cniscope/cniscope/pkg/settings"
	"github.com/cniscope/cniscope/test/harness"
)

// A running cniscope hands over late what happens. Who records beside it, and stops as soon as what was to be
// recorded is over, has all of it: a CI that records the pods of one command, say.
func TestARecordingHasWhatHappenedBeforeItsEnd(t *testing.T) {
	o := config.Default()
	o.State.Dir = t.TempDir()
	s := settings.Of(o, record.Host().BootID, "test")
	header := harness.Must(s.Header())(t)
	told, end := context.WithCancel(t.Context())
	answerAt(t, o.State.Dir, control.Handlers{ReadHandlers: control.ReadHandlers{Record: func(ctx context.Context, w http.ResponseWriter, flush func()) error {
		out, err := record.NewWriter(w, header)
		if err != nil {
			return err
		}
		write := func(at int64, body event.Body) error {
			err := out.Write(event.Event{Time: at, Body: body})
			if err == nil {
				err = out.Flush()
			}
			flush()
			return err
		}
		happened := clock.Monotonic()
		if err := write(happened, &event.Tick{}); err != nil {
			return err
		}
		end()
		<-told.Done()
		if err := write(happened, &event.Tick{}); err != nil { // from before: more may come
			return err
		}
		if err := write(happened, &event.Degraded{Feature: "handed over late"}); err != nil {
			return err
		}
		for every := time.NewTicker(time.Millisecond); ; {
			select {
			case <-ctx.Done():
				every.Stop()
				return nil
			case <-every.C:
				if err := write(clock.Monotonic(), &event.Tick{}); err != nil {
					return err
				}
			}
		}
	}}})
	file := filepath.Join(t.TempDir(), "beside.rec")
	to := Recording{Path: file, Diagnostics: io.Discard}
	harness.Check(t, recordRunning(told, o, to, slog.New(slog.DiscardHandler), new(lock.HeldError)))
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "handed over late") {
		t.Errorf("%v, %s", err, text)
	}
}

// A running cniscope that never says how far it is, because it has no probe or is of an older version, or that does not
// answer, is not waited for as one that is behind, nor said to be.
func TestARecordingEndsWithoutTicks(t *testing.T) {
	o := config.Default()
	header := harness.Must(settings.Of(o, record.Host().BootID, "test").Header())(t)
	for name, answers := range map[string]bool{"no ticks": true, "no answer": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := o
			o.State.Dir = t.TempDir()
			told, end := context.WithCancel(t.Context())
			answerAt(t, o.State.Dir, control.Handlers{ReadHandlers: control.ReadHandlers{Record: func(ctx context.Context, w http.ResponseWriter, flush func()) error {
				if answers {
					out, err := record.NewWriter(w, header)
					if err != nil {
						return err
					}
					if err := errors.Join(out.Write(event.Event{Body: &event.Degraded{Feature: "seen"}}), out.Flush()); err != nil {
						return err
					}
					flush()
				}
				end()
				<-ctx.Done()
				return nil
			}}})
			file := filepath.Join(t.TempDir(), "beside.rec")
			to := Recording{Path: file, Diagnostics: io.Discard}
			var said strings.Builder
			err := recordRunning(told, o, to, slog.New(slog.NewTextHandler(&said, nil)), new(lock.HeldError))
			if !answers {
				if !errors.Is(err, context.Canceled) {
					t.Errorf("without an answer: %v", err)
				}
				return
			}
			if strings.Contains(said.String(), "is behind,") || !strings.Contains(said.String(), "no progress reported by") {
				t.Error(said.String())
			}
			if text, reading := os.ReadFile(file); errors.Join(err, reading) != nil || !strings.Contains(string(text), "seen") {
				t.Errorf("%v, %v, %s", err, reading, text)
			}
		})
	}
}

// Events that wait for a recorder are still written when the running cniscope ends.
func TestARecordingHasWhatWaitedForIt(t *testing.T) {
	n, over, end := recording(t)
	var out httpBody
	if err := n.record(over, settings.Of(config.Default(), "boot", "test"), &out, func() {}, func() {
		for range 100 {
			n.take(event.Event{Body: &event.Degraded{Feature: "waited"}})
		}
		if !n.waits() {
			t.Error("no ticks for a recording")
		}
		end()
	}); err != nil {
		t.Fatal(err)
	}
	harness.Equal(t, strings.Count(out.String(), "waited"), 100, "of 100 events")
	if n.waits() {
		t.Error("ticks for a recording that ended")
	}
}

// A recording ends though events go on coming, as fast as it is written.
func TestARecordingEndsWhileEventsGoOnComing(t *testing.T) {
	n, over, end := recording(t)
	const most = 4 * streamRoom // so that the test ends in any case
	var mu sync.Mutex
	var joined *consumed
	sent := 0
	more := func() {
		mu.Lock()
		defer mu.Unlock()
		for ; joined != nil && sent < most && len(joined.queue) < streamRoom; sent++ {
			n.take(event.Event{Body: &event.Degraded{Feature: "waited"}})
		}
	}
	out := busyBody{more: more}
	wake := func() {
		mu.Lock()
		n.consumers.mu.Lock()
		joined = n.consumers.all[0]
		n.consumers.mu.Unlock()
		mu.Unlock()
		more()
		end()
	}
	harness.Check(t, n.record(over, settings.Of(config.Default(), "boot", "test"), &out, func() {}, wake))
	if n := strings.Count(out.String(), "waited"); n < streamRoom || n >= 2*streamRoom {
		t.Errorf("%d events were written, and %d waited", n, streamRoom)
	}
}

// recording is a node without consumers, and the context of one who records.
func recording(t *testing.T) (n *node, over context.Context, end func()) {
	t.Helper()
	n = harness.Must(newNode(config.Default(), "test", slog.New(slog.DiscardHandler), &slog.LevelVar{}))(t)
	over, end = context.WithCancel(t.Context())
	return n, over, end
}

// busyBody is an answer during whose writing more happens.
type busyBody struct {
	httpBody
	more func()
}

func (b *busyBody) Write(p []byte) (int, error) {
	b.more()
	return b.httpBody.Write(p)
}

// httpBody is an answer that is kept.
type httpBody struct{ strings.Builder }

func (*httpBody) Header() http.Header { return http.Header{} }
func (*httpBody) WriteHeader(int)     {}

// answerAt answers in a state folder, as a running cniscope does, until the test is over.
func answerAt(t *testing.T, dir string, h control.Handlers) {
	t.Helper()
	l := harness.Must(control.Listen(dir))(t)
	harness.During(t, func(ctx context.Context) { control.Serve(ctx, l, h, slog.New(slog.DiscardHandler)) })
}
