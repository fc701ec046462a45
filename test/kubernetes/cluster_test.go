//go:build linux

package kubernetes

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/kube"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

type cluster struct {
	*testing.T
	ctx    context.Context
	rig    *rig.Rig
	jaeger *rig.Jaeger
	api    *kube.API

	node, address, server string
	healthz               string
	tokens                map[string]string
	podLogs               string
}

func start(t *testing.T, o rig.Options) *cluster {
	t.Helper()
	return startTraced(t, o, true)
}

// startTraced starts no Jaeger unless it is traced.
func startTraced(t *testing.T, o rig.Options, traced bool) *cluster {
	t.Helper()
	harness.Root(t)
	ctx := harness.Context(t)
	o.Covers = append(slices.Clone(o.Covers), kept)
	c := &cluster{T: t, ctx: ctx, node: "rig-node"}
	c.tool("kubelet") // skip before anything is started
	c.etcd()
	if traced {
		c.jaeger = scope.Jaeger(ctx, t)
		o.OTLP = c.jaeger.OTLP()
	}
	o.Usual, o.Ready = true, 2*time.Minute
	c.rig = scope.Rig(ctx, t, o)
	// As kubeadm demands; the rig restores it.
	harness.Check(c, os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o600))
	began := time.Now()
	harness.Check(c, c.rig.ImportImage(ctx, imageArchive, imageName))
	c.addNodeAddress()
	c.startControlPlane()
	c.startKubelet()
	t.Logf("the node was ready after %s", time.Since(began).Round(time.Millisecond))
	return c
}

func (c *cluster) in(t *testing.T) *cluster {
	sub := *c
	sub.T = t
	return &sub
}

func (c *cluster) beside(name string, ready func(context.Context) error, command ...string) {
	c.Helper()
	env := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + c.rig.Dir(),
		"OTEL_BSP_SCHEDULE_DELAY=200",
	}
	d := harness.Must(c.rig.Beside(c.ctx, name, env, command, ready))(c)
	c.Cleanup(func() {
		d.Stop()
		if c.Failed() && os.Getenv("CNISCOPE_TEST_LOGS") != "" {
			text, _ := os.ReadFile(d.Log())
			_ = os.WriteFile(os.Getenv("CNISCOPE_TEST_LOGS")+"/"+name+".log", text, 0o600)
		}
	})
}
