//go:build linux

package e2e

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

const wholeSandbox = "cri.sandbox.run"

type sink struct {
	ptraceotlp.UnimplementedGRPCServer
	mu     sync.Mutex
	traces map[string]string // by sandbox
	spans  map[string]map[string]interval
}

type interval struct{ from, to int64 }

func (i interval) and(o interval) interval {
	if i.to == 0 {
		return o
	}
	return interval{min(i.from, o.from), max(i.to, o.to)}
}

func (s *sink) Export(_ context.Context, request ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rs := range request.Traces().ResourceSpans().All() {
		id, own := rs.Resource().Attributes().Get("sandbox.id")
		for _, ss := range rs.ScopeSpans().All() {
			for _, x := range ss.Spans().All() {
				key := "containerd " + x.TraceID().String()
				if own {
					key = "cniscope " + id.Str()
				} else if of, has := x.Attributes().Get("sandbox.id"); has && x.Name() == wholeSandbox {
					s.traces[of.Str()] = key
				}
				name := x.Name()
				if i, has := x.Attributes().Get("cni.ifname"); own && has {
					name += " " + i.Str()
				}
				if s.spans[key] == nil {
					s.spans[key] = map[string]interval{}
				}
				s.spans[key][name] = s.spans[key][name].and(intervalOf(x))
			}
		}
	}
	return ptraceotlp.NewExportResponse(), nil
}

func intervalOf(x ptrace.Span) interval {
	return interval{int64(x.StartTimestamp()), int64(x.EndTimestamp())}
}

func (s *sink) of(t *testing.T, key func() string, name string) (found interval) {
	t.Helper()
	harness.Until(t, "a span "+name, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		found = s.spans[key()][name]
		return found.to != 0
	})
	return found
}

func TestPartsOfStartsAreWhereContainerdsSpansAre(t *testing.T) {
	for name, relayed := range map[string]bool{"by environment": false, "by the relay": true} {
		t.Run(name, func(t *testing.T) { partsOfStarts(t, relayed) })
	}
}

func partsOfStarts(t *testing.T, relayed bool) {
	to := &sink{traces: map[string]string{}, spans: map[string]map[string]interval{}}
	listener := harness.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	server := grpc.NewServer()
	ptraceotlp.RegisterGRPCServer(server, to)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	s := &stage{T: t, ctx: harness.Context(t), endpoint: "http://" + listener.Addr().String()}
	addr, toml := listener.Addr().String(), patient+"[slow]\ncall = \"1ms\"\n"
	if relayed {
		addr = harness.Address(t)
		toml += fmt.Sprintf("[relay]\nlisten = %q\n", addr)
	}
	ro := byEnvironment("grpc", "OTEL_BSP_SCHEDULE_DELAY=200")(addr)
	ro.Networks = []rig.Network{{Plugins: []rig.Plugin{rig.Bridge()}}}
	s.startRig(ro)
	s.startScope(scope.Options{TOML: toml})
	sandboxes := make([]string, 10)
	s.inParallel(len(sandboxes), len(sandboxes), func(i int) (err error) {
		sandboxes[i], err = s.rig.RunPod(s.ctx, rig.PodOptions{Namespace: "shop", Name: fmt.Sprintf("web-%d", i)})
		return err
	})
	for _, id := range sandboxes {
		theirs := func(name string) interval {
			return to.of(t, func() string { return to.traces[id] }, name)
		}
		ours := func(name string) interval {
			return to.of(t, func() string { return "cniscope " + id }, name)
		}
		whole, setup, task := theirs(wholeSandbox), theirs("cni.setup_pod_network"), theirs("client.task.Start")
		begin, add, start := ours("prepare network"), ours("CNI ADD eth0"), ours("sandbox start")
		runc := ours("runc start")
		instants := []instant{
			{"containerd begins the sandbox", whole.from - tick},
			{"the namespace is mounted", begin.from},
			{"containerd begins the network", setup.from},
			{"the first plugin runs", begin.to},
			{"the first plugin for eth0 runs", add.from},
			{"its last plugin ends", add.to},
			{"containerd's network ends", setup.to},
		}
		inOrder(t, id, instants...)
		if relayed {
			to.mu.Lock()
			made := to.spans["cniscope "+id]["create network namespace"]
			to.mu.Unlock()
			inOrder(t, id, instant{"containerd is asked", theirs("runtime.v1.RuntimeService/RunPodSandbox").from - tick},
				instant{"the first part", made.and(begin).from}, instant{"containerd has begun the sandbox", whole.from + tick})
			if made.to != 0 {
				harness.Equal(t, made.to, begin.from, "the end of the one part and the begin of the other")
			}
		}
		inOrder(t, id, instant{"containerd starts the task", task.from}, instant{"runc start", runc.from},
			instant{"its end", runc.to}, instant{"the end of the task's start", task.to})
		inOrder(t, id, instant{"the last plugin ends", add.to}, instant{"the rest of the start", start.from},
			instant{"its end", start.to}, instant{"containerd's end", whole.to})
	}
	harness.Check(t, s.scope.Stop())
}

// tick is the resolution of times of files with CONFIG_HZ=100.
const tick = int64(10 * time.Millisecond)

type instant struct {
	what string
	at   int64
}

func inOrder(t *testing.T, id string, all ...instant) {
	t.Helper()
	var says strings.Builder
	late := false
	for i, one := range all {
		fmt.Fprintf(&says, "%.3f ms: %s\n", float64(one.at-all[0].at)/1e6, one.what)
		late = late || i > 0 && one.at < all[i-1].at
	}
	if late {
		t.Errorf("sandbox %s, not in order:\n%s", id, says.String())
	}
}
