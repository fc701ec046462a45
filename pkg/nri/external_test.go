//go:build linux

package nri

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/ttrpc"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestLifecycleArrives(t *testing.T) {
	dir := t.TempDir()
	r := harness.Must(startRuntime(dir, pod("old")))(t)
	defer r.Stop()
	var got seen
	var runtime string
	before := clock.Monotonic()
	p := start(t, Options{
		Socket:    filepath.Join(dir, "nri.sock"),
		Connected: func(name, version string) { runtime = name + " " + version },
	}, got.sink)
	<-p.Attempted()

	ctx := ttrpc.WithMetadata(context.Background(), ttrpc.MD{"traceparent": {traceparent}, "tracestate": {"a=b"}})
	for _, request := range []func(context.Context, *api.PodSandbox) error{r.run, r.stop, r.remove} {
		harness.Check(t, request(ctx, pod("new")))
	}
	harness.Until(t, "four events", func() bool { return len(got.all()) == 4 })
	want := []string{"present old", "running new", "stopped new", "removed new"}
	if phases := phases(got.all()); !slices.Equal(phases, want) {
		t.Fatalf("got %v, want %v", phases, want)
	}
	for _, e := range got.all() {
		if e.Time < before || e.Time > clock.Monotonic() {
			t.Errorf("an event at %d, not between %d and now", e.Time, before)
		}
	}
	trace := got.all()[1].Body.(*event.Sandbox).Trace
	harness.Equal(t, trace, (event.TraceContext{Parent: traceparent, State: "a=b"}), "the request's trace context is")
	harness.Equal(t, runtime, "containerd v2.4.2", "the runtime calls itself")
	harness.Until(t, "the registration", func() bool {
		got.mu.Lock()
		defer got.mu.Unlock()
		return slices.Equal(got.registered, []uint32{uint32(os.Getpid())})
	})
	s := p.Counts()
	if !s.Connected || s.RuntimePID != os.Getpid() || s.Sessions != 1 || s.Received != 4 || s.Dropped != 0 ||
		s.Handler.Count != 3 {
		t.Errorf("counts are wrong: connected %v, pid %d, sessions %d, received %d, dropped %d, handled %d",
			s.Connected, s.RuntimePID, s.Sessions, s.Received, s.Dropped, s.Handler.Count)
	}
}

// NRI 0.8.0 (containerd 1.7) refuses plugins that subscribe to other events.
func TestSubscribesToWhatTheOldestRuntimeKnows(t *testing.T) {
	var want api.EventMask
	want.Set(api.Event_RUN_POD_SANDBOX, api.Event_STOP_POD_SANDBOX, api.Event_REMOVE_POD_SANDBOX)
	type answer struct {
		*api.ConfigureResponse
		err error
	}
	answers := make(chan answer, 1)
	dir := t.TempDir()
	listen(t, dir, func(c net.Conn) {
		response, err := speak(t, c).complete("")
		answers <- answer{response, err}
	})
	p := start(t, Options{Socket: filepath.Join(dir, "nri.sock")}, func(event.Event) {})
	a := <-answers
	if a.err != nil || api.EventMask(a.Events) != want {
		t.Fatalf("subscribed to %#x, %v; want %#x", a.GetEvents(), a.err, want)
	}
	if a.FailurePolicy != nil {
		t.Error("with a failure policy a plugin that is slow would stay, and delay every pod")
	}
	<-p.Attempted()
}

func TestBlockedSinkNeverDelaysAPod(t *testing.T) {
	dir := t.TempDir()
	r := harness.Must(startRuntime(dir))(t)
	defer r.Stop()
	const pods, queue = 50, 4
	var got seen
	blocked := make(chan struct{})
	release := sync.OnceFunc(func() { close(blocked) })
	t.Cleanup(release)
	p := start(t, Options{Socket: filepath.Join(dir, "nri.sock"), Queue: queue}, func(e event.Event) {
		<-blocked
		got.sink(e)
	})
	t.Cleanup(release) // before the plugin's end
	<-p.Attempted()
	for i := range pods {
		harness.Check(t, r.run(context.Background(), pod(fmt.Sprint(i))))
	}
	dropped := p.Counts().Dropped
	if dropped < pods-queue-1 || dropped > pods-queue {
		t.Errorf("%d dropped; want all but those in the queue and perhaps one in the sink", dropped)
	}
	release()
	var delivered, lost uint64
	harness.Until(t, "all pods delivered or reported as lost", func() bool {
		delivered, lost = 0, 0
		for _, e := range got.all() {
			switch body := e.Body.(type) {
			case *event.Sandbox:
				delivered++
			case *event.Lost:
				if body.Source != "nri" || body.Reason != "queue full" {
					t.Fatalf("lost %+v", body)
				}
				lost += body.Count
			}
		}
		return delivered+lost == pods
	})
	if lost != dropped {
		t.Errorf("%d reported as lost, %d dropped", lost, dropped)
	}
}

func TestPanicsAreSurvived(t *testing.T) {
	dir := t.TempDir()
	r := harness.Must(startRuntime(dir, pod("old")))(t)
	defer r.Stop()
	var got seen
	p := start(t, Options{
		Socket:    filepath.Join(dir, "nri.sock"),
		Connected: func(string, string) { panic("a listener's fault") },
	}, func(e event.Event) {
		if len(phases([]event.Event{e})) == 1 && e.Body.(*event.Sandbox).ID == "old" {
			panic("a sink's fault")
		}
		got.sink(e)
	})
	<-p.Attempted()
	harness.Check(t, r.run(context.Background(), pod("new")))
	harness.Until(t, "the event after the panics",
		func() bool { return slices.Contains(phases(got.all()), "running new") })
	harness.Equal(t, p.Counts().Panics, 2, "panics counted")
}

func TestHandlerRecoversItsPanics(t *testing.T) {
	p := New(Options{})
	close(p.queue.events)
	h := newHandlers(p)
	if err := h.RunPodSandbox(context.Background(), pod("new")); err != nil {
		t.Errorf("a panic fails the pod: %v", err)
	}
	if _, err := h.Synchronize(context.Background(), []*api.PodSandbox{pod("old")}, nil); err != nil {
		t.Errorf("a panic fails the registration: %v", err)
	}
	harness.Equal(t, p.Counts().Panics, 2, "panics counted")
}
