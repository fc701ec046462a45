//go:build linux

// Package neighbours holds cniscope against processes that share its node and mean it harm:
// they hold sockets of the relay and of the metrics' server for as long as they can, beside a
// containerd that exports its spans through the relay. Its bounds are those of time, so it runs
// on demand: make test-neighbours.
package neighbours

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
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

// lasting is for how long they are there: NEIGHBOURS of make, 20 s to 10 min.
func lasting(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("CNISCOPE_NEIGHBOURS")
	if text == "" || os.Geteuid() != 0 {
		t.Skip("has bounds of time: make test-neighbours, as root")
	}
	d, err := time.ParseDuration(text)
	harness.Check(t, err)
	return d
}

// node is a containerd that exports its spans to the relay of a cniscope.
type node struct {
	*testing.T
	ctx            context.Context
	rig            *rig.Rig
	scope          *scope.Scope
	collector      *collector
	relay, metrics string
	options        string // of [metrics]
	pods           int

	probes, controls []time.Duration // how long /healthz took, and a server that nobody attacks
	failed           int
}

// older is the newest containerd that needs the relay.
const older = "containerd-2.3"

// newNode starts it with a containerd of rig.Tools; options are those of [metrics], else it listens at metrics.
func newNode(t *testing.T, containerd, options string) *node {
	t.Helper()
	ctx := harness.Context(t)
	n := &node{T: t, ctx: ctx, collector: collect(t), relay: harness.Address(t), metrics: harness.Address(t)}
	tools, err := rig.Tools(filepath.Join(containerd, "containerd"))
	harness.Check(t, err)
	n.rig = scope.Rig(ctx, t, rig.Options{
		Containerd: filepath.Join(tools, containerd),
		Env:        []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + n.relay, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", fmt.Sprint("OTEL_BSP_SCHEDULE_DELAY=", delay.Milliseconds())},
	})
	n.options = options
	if options == "" {
		n.options = fmt.Sprintf("listen = %q\n", n.metrics)
	}
	n.start()
	return n
}

// start starts cniscope.
func (n *node) start() {
	n.Helper()
	n.scope = scope.Observe(n.ctx, n, n.rig, scope.Options{Program: program, TOML: fmt.Sprintf(
		"[metrics]\n%s[relay]\nlisten = %q\nupstream = \"http://%s\"\n", n.options, n.relay, n.collector.addr)})
}

// settle waits until containerd exports: it began before the relay listened, and gRPC tries
// again later and later.
func (n *node) settle() {
	n.Helper()
	n.pod()
	harness.Until(n, "containerd exports", func() bool { return len(n.collector.times()) >= n.pods })
}

// pod runs one, takes it away again, and returns how long its start took.
func (n *node) pod() time.Duration {
	n.Helper()
	n.pods++
	began := time.Now()
	id, err := n.rig.RunPod(n.ctx, rig.PodOptions{Namespace: "shop", Name: fmt.Sprint("web-", n.pods)})
	took := time.Since(began)
	harness.Check(n.T, err)
	harness.Check(n.T, n.rig.StopPod(n.ctx, id))
	harness.Check(n.T, n.rig.RemovePod(n.ctx, id))
	return took
}

// quantile of times, which it sorts.
func quantile(times []time.Duration, q float64) time.Duration {
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	return times[min(len(times)-1, int(q*float64(len(times))))].Round(100 * time.Microsecond)
}
