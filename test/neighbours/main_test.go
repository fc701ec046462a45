//go:build linux

// Package neighbours tests cniscope against hostile processes on its node. They hold sockets of the relay and the
// metrics server, beside a containerd that exports through the relay. The tests assert durations, so they run on
// demand: make test-neighbours.
package neighbours

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

var program string

func TestMain(m *testing.M) {
	if manner := os.Getenv(mannerVariable); manner != "" {
		besiegers[manner](os.Args[1])
		return
	}
	os.Exit(scope.Main(m, &program))
}

// lasting returns the duration of an attack: NEIGHBOURS of make, 20 s to 10 min.
func lasting(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("CNISCOPE_NEIGHBOURS")
	if text == "" || os.Geteuid() != 0 {
		t.Skip("has bounds of time: make test-neighbours, as root")
	}
	return harness.Must(time.ParseDuration(text))(t)
}

type node struct {
	*testing.T
	ctx            context.Context
	rig            *rig.Rig
	scope          *scope.Scope
	collector      *collector
	relay, metrics string
	options        string
	pods           int

	probes, controls []time.Duration
	failed           int
}

// older is the newest containerd that needs the relay.
const older = "containerd-2.3"

func newNode(t *testing.T, containerd, options string) *node {
	t.Helper()
	ctx := harness.Context(t)
	n := &node{T: t, ctx: ctx, collector: collect(t), relay: harness.Address(t), metrics: harness.Address(t)}
	n.rig = scope.Rig(ctx, t, rig.Options{
		Containerd: scope.Containerd(t, containerd),
		Env:        []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + n.relay, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", fmt.Sprint("OTEL_BSP_SCHEDULE_DELAY=", delay.Milliseconds())},
	})
	n.options = options
	if options == "" {
		n.options = fmt.Sprintf("listen = %q\n", n.metrics)
	}
	n.start()
	return n
}

func (n *node) start() {
	n.Helper()
	n.scope = scope.Observe(n.ctx, n, n.rig, scope.Options{Program: program, TOML: fmt.Sprintf(
		"[metrics]\n%s[relay]\nlisten = %q\nupstream = \"http://%s\"\n", n.options, n.relay, n.collector.addr)})
}

// settle waits until containerd exports: it starts before the relay listens.
func (n *node) settle() {
	n.Helper()
	n.pod()
	harness.Until(n, "containerd exports", func() bool { return len(n.collector.times()) >= n.pods })
}

func (n *node) pod() time.Duration {
	n.Helper()
	n.pods++
	began := time.Now()
	id, err := n.rig.RunPod(n.ctx, rig.PodOptions{Namespace: "shop", Name: fmt.Sprint("web-", n.pods)})
	took := time.Since(began)
	harness.Check(n.T, err)
	harness.Check(n.T, n.rig.EndPod(n.ctx, id))
	return took
}

func quantile(times []time.Duration, q float64) time.Duration {
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	return times[min(len(times)-1, int(q*float64(len(times))))].Round(100 * time.Microsecond)
}
