package nri

import (
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

func TestSandboxOf(t *testing.T) {
	got := sandboxOf(event.SandboxRunning, &api.PodSandbox{
		Id: "c0ffee", Name: "web", Namespace: "shop", Uid: "u-1", RuntimeHandler: "runc",
		Labels: map[string]string{"app": "web\x1b[31m"},
		Annotations: map[string]string{
			"cniscope.dev/keep": "always",
			"kubectl.kubernetes.io/last-applied-configuration": `{"password":"canary"}`,
		},
		Ips: []string{"10.0.0.7", "fd00::7"},
		Pid: 77,
		Linux: &api.LinuxPodSandbox{Namespaces: []*api.LinuxNamespace{
			{Type: "ipc", Path: "/proc/77/ns/ipc"},
			{Type: "network", Path: "/var/run/netns/cni-1"},
		}},
	}, event.TraceContext{Parent: "p"})
	want := &event.Sandbox{
		Phase: event.SandboxRunning, ID: "c0ffee",
		Pod:            event.Pod{Namespace: "shop", Name: "web", UID: "u-1"},
		Labels:         map[string]string{"app": `web\x1b[31m`},
		Annotations:    map[string]string{"cniscope.dev/keep": "always"},
		RuntimeHandler: "runc", IPs: []string{"10.0.0.7", "fd00::7"},
		NetNS: "/var/run/netns/cni-1", PID: 77,
		Trace: event.TraceContext{Parent: "p"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got  %+v\nwant %+v", got, want)
	}
	if got := sandboxOf(event.SandboxRemoved, nil, event.TraceContext{}); !reflect.DeepEqual(got,
		&event.Sandbox{Phase: event.SandboxRemoved}) {
		t.Errorf("of no pod: %+v", got)
	}
}

func TestSandboxIsBounded(t *testing.T) {
	long := strings.Repeat("x", 1<<16)
	huge := &api.PodSandbox{
		Id: long, Name: long, Namespace: long, Uid: long, RuntimeHandler: long,
		Labels: map[string]string{}, Annotations: map[string]string{},
	}
	for i := range 1000 {
		huge.Labels[fmt.Sprint(i, long)] = long
		huge.Annotations[fmt.Sprint(annotationPrefix, i, long)] = long
		huge.Ips = append(huge.Ips, long)
	}
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for text, kept := range map[string]int{parent: 1, long: 0, "secret": 0} {
		if got := annotations(map[string]string{event.PodTraceparent: text, "secret": "s"}); len(got) != kept {
			t.Errorf("%q", got)
		}
	}
	got := sandboxOf(event.SandboxRunning, huge, event.TraceContext{})
	if len(got.Labels) != maxLabels || len(got.Annotations) != maxLabels || len(got.IPs) != maxIPs {
		t.Errorf("%d labels, %d annotations, %d addresses", len(got.Labels), len(got.Annotations), len(got.IPs))
	}
	if n := len(fmt.Sprint(*got)); n > 100<<10 {
		t.Errorf("%d bytes of one sandbox are kept", n)
	}
}

func TestConfigureNeverFails(t *testing.T) {
	tests := map[string]struct {
		configure func(string) error
		panics    uint64
	}{
		"no callback":     {nil, 0},
		"a broken text":   {func(string) error { return errors.New("line 3: what is this?") }, 0},
		"a panic":         {func(string) error { panic("bug") }, 1},
		"a slow callback": {func(string) error { time.Sleep(10 * time.Millisecond); return nil }, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := New(Options{Configure: test.configure})
			h := newHandlers(p)
			if mask, err := h.Configure(context.Background(), "[slow", "containerd", "v2.4.2"); mask != 0 || err != nil {
				t.Errorf("answered %v, %v", mask, err)
			}
			<-h.applied
			harness.Equal(t, p.Counts().Panics, test.panics, "panics counted")
		})
	}
}

func TestRemedy(t *testing.T) {
	failed := func(err error) error { return fmt.Errorf("dial: %w", &net.OpError{Op: "dial", Err: err}) }
	tests := map[string]struct {
		err  error
		says []string
	}{
		"no socket": {
			failed(syscall.ENOENT),
			[]string{"no NRI socket /run/nri.sock", "configs/containerd/cniscope-nri.toml"},
		},
		"dead socket": {failed(syscall.ECONNREFUSED), []string{"no process listens", "/run/nri.sock"}},
		"forbidden":   {failed(syscall.EACCES), []string{"run cniscope as root"}},
		"cut off":     {errCut, []string{"closed the NRI connection"}},
		"refused":     {errors.New("unknown \x1b[31m plugin"), []string{`unknown \x1b[31m plugin`, "containerd's log"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := remedy(test.err, "/run/nri.sock")
			harness.Says(t, got, append(test.says, "without labels")...)
		})
	}
}

func TestBackoff(t *testing.T) {
	const first, limit = time.Second, time.Minute
	for failures, want := range map[int]time.Duration{
		0: first, 1: 2 * first, 5: 32 * first, 6: limit, 15: limit,
		1 << 30: limit,
	} {
		harness.Equal(t, backoff(first, limit, failures, 1), want, "after", failures, "failures at most")
		harness.Equal(t, backoff(first, limit, failures, 0), want/2, "after", failures, "failures at least")
	}
}

func TestTimes(t *testing.T) {
	harness.Equal(t, (Times{}).Quantile(0.99), 0, "of nothing")
	for d := time.Duration(4); d < 8*time.Second; d += d/7 + 1 {
		if bound := upperBound(bucketOf(d)); bound <= d || bound > d+d/4+1 {
			t.Fatalf("%v is in a bucket up to %v", d, bound)
		}
	}
	var recorded times
	for i := range 1000 {
		recorded.add(time.Duration(i+1) * time.Microsecond)
	}
	for _, d := range []time.Duration{-1, 0, time.Hour} {
		recorded.add(d)
	}
	s := recorded.snapshot()
	if s.Count != 1003 || s.Max != time.Hour || s.Quantile(1) != time.Hour {
		t.Errorf("%d counted, longest %v, all below %v", s.Count, s.Max, s.Quantile(1))
	}
	if p99 := s.Quantile(0.99); p99 < 990*time.Microsecond || p99 > 990*time.Microsecond*5/4 {
		t.Errorf("p99 is %v, want 990µs and up to a quarter more", p99)
	}
}

func BenchmarkHandler(b *testing.B) {
	p := New(Options{})
	go p.pump(b.Context(), func(event.Event) {})
	labels := map[string]string{}
	for i := range 10 {
		labels[fmt.Sprint("app.kubernetes.io/label-", i)] = "value"
	}
	pod := &api.PodSandbox{
		Id: strings.Repeat("c", 64), Name: "web", Namespace: "shop", Labels: labels,
		Annotations: labels,
	}
	h := newHandlers(p)
	for b.Loop() {
		ctx, answered := context.WithCancel(context.Background())
		_ = h.RunPodSandbox(ctx, pod)
		answered()
	}
	b.ReportMetric(float64(p.Counts().Handler.Quantile(0.99)), "p99-ns")
}
