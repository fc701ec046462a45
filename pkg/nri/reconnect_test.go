//go:build linux

package nri

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

func TestRuntimeFailsDuringRegistration(t *testing.T) {
	steps := map[string]func(*testing.T, net.Conn){
		"closes at once":        func(_ *testing.T, c net.Conn) { c.Close() },
		"says nothing":          func(*testing.T, net.Conn) {},
		"talks nonsense":        func(_ *testing.T, c net.Conn) { _, _ = c.Write([]byte(strings.Repeat("nonsense", 1000))) },
		"registers, then hangs": func(t *testing.T, c net.Conn) { <-speak(t, c).registered },
		"registers, then closes": func(t *testing.T, c net.Conn) {
			r := speak(t, c)
			<-r.registered
			time.Sleep(time.Millisecond) // so that the answer usually arrives first
			r.mux.Close()
		},
		"configures, then closes": func(t *testing.T, c net.Conn) {
			r := speak(t, c)
			go func() {
				time.Sleep(time.Millisecond)
				r.mux.Close()
			}()
			_, _ = r.complete("")
		},
	}
	for name, step := range steps {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var attempts atomic.Int32
			l := listen(t, dir, func(c net.Conn) {
				attempts.Add(1)
				step(t, c)
			})
			p := New(Options{Socket: filepath.Join(dir, "nri.sock")})
			p.pace = testPace
			ctx, cancel := context.WithCancel(context.Background())
			ended := make(chan error, 1)
			var got seen
			go func() { ended <- p.Run(ctx, got.sink) }()

			<-p.Attempted()
			harness.Until(t, "three attempts", func() bool { return attempts.Load() >= 3 })
			l.Close()
			r := harness.Must(startRuntime(dir))(t)
			defer r.Stop()
			harness.Until(t, "a pod seen", func() bool {
				harness.Check(t, r.run(context.Background(), pod("new")))
				return slices.Contains(phases(got.all()), "running new")
			})
			cancel()
			harness.Check(t, <-ended)
			harness.Equal(t, goroutines("stub.(*stub).Start"), 0, "registrations still hang")
		})
	}
}

func goroutines(function string) (n int) {
	buf := make([]byte, 1<<20)
	for _, g := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(g, function+"(") {
			n++
		}
	}
	return n
}

func TestRuntimeIsKilled(t *testing.T) {
	dir := t.TempDir()
	first := startProcess(t, dir)
	var got seen
	p := start(t, Options{Socket: filepath.Join(dir, "nri.sock")}, got.sink)
	<-p.Attempted()
	harness.Equal(t, p.Counts().RuntimePID, first.cmd.Process.Pid, "the runtime has pid")
	first.run("1")
	first.kill()
	harness.Until(t, "said that NRI is gone", func() bool { return slices.Contains(phases(got.all()), "degraded") })
	second := startProcess(t, dir)
	harness.Until(t, "said that NRI is back", func() bool { return slices.Contains(phases(got.all()), "restored") })
	harness.Until(t, "synchronised", func() bool { return len(phases(got.all())) == 5 })
	second.run("2")
	harness.Until(t, "the second pod", func() bool { return len(phases(got.all())) == 6 })

	all := phases(got.all())
	slices.Sort(all) // NRI's return and the first sandboxes have no order
	want := []string{"degraded", "present present", "present present", "restored", "running 1", "running 2"}
	if !slices.Equal(all, want) {
		t.Fatalf("got %v, want %v", all, want)
	}
	harness.Equal(t, p.Counts().Sessions, 2, "sessions")
}

func TestNoNRI(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "nri.sock")
	var got seen
	p := start(t, Options{Socket: socket}, got.sink)
	<-p.Attempted()
	harness.Until(t, "said", func() bool { return len(got.all()) > 0 })
	said, ok := got.all()[0].Body.(*event.Degraded)
	if !ok || said.Feature != "nri" || said.Restored || !strings.Contains(said.Reason, socket) ||
		!strings.Contains(said.Reason, "cniscope-nri.toml") {
		t.Fatalf("said %+v", got.all()[0].Body)
	}
	// Another reason, but no other loss.
	harness.Check(t, os.WriteFile(socket, nil, 0o600))
	r := harness.Must(startRuntime(dir))(t)
	defer r.Stop()
	harness.Until(t, "back", func() bool { return len(phases(got.all())) == 2 })
	if all := phases(got.all()); !slices.Equal(all, []string{"degraded", "restored"}) {
		t.Fatalf("said %v", all)
	}
}
