//go:build linux

package kubernetes

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

// One trace has the kubelet, containerd and cniscope's spans, for setup and teardown.
func TestOneTraceFromKubeletToIptables(t *testing.T) {
	c := start(t, rig.Options{})
	c.serviceAccount("default")
	scope := c.run(c.podOf(c.apply(), "cniscope-0", nil), running)
	c.logged(scope, "observing CNI calls")
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("cniscope's log:\n%s", c.log(scope))
		}
	})

	web := c.run(c.web("web-0"), running)
	add := c.traceOf(web, "CNI ADD", "kubelet/syncPod")
	c.whole(add)
	for _, name := range []string{"bridge ADD", "host-local ADD", "portmap ADD", "iptables"} {
		if len(add.find("cniscope", name)) == 0 {
			t.Errorf("the trace has no span %q of cniscope", name)
		}
	}
	for _, call := range add.find("cniscope", "CNI ADD") {
		if !call.has("k8s.pod.uid", web.Metadata.UID) {
			t.Errorf("%s is not of pod %s", call, web.Metadata.UID)
		}
	}

	c.remove(web)
	del := c.traceOf(web, "CNI DEL", "kubelet/syncTerminatingPod")
	c.whole(del)
	if len(del.find("cniscope", "bridge DEL")) == 0 {
		t.Error("the teardown's trace has no span of bridge DEL")
	}
	t.Logf("setup:\n%s\nteardown:\n%s", add, del)
}

// traceOf waits for a complete trace with the pod's call below a span of the kubelet.
func (c *cluster) traceOf(p *pod, call, top string) (found *trace) {
	c.Helper()
	harness.Eventually(c, func() error {
		all, err := c.jaeger.FindTraces(c.ctx, rig.Query{Service: "cniscope", Operation: call})
		if err != nil {
			return err
		}
		var ids []string
		for _, s := range newTrace("", all).spans {
			if s.service == "cniscope" && s.Name == call && s.has("k8s.pod.uid", p.Metadata.UID) {
				ids = append(ids, s.traceID())
			}
		}
		slices.Sort(ids)
		var seen []string
		for _, id := range slices.Compact(ids) {
			one, err := c.jaeger.Traces(c.ctx, id)
			if err != nil {
				return err
			}
			found = newTrace(id, one)
			for _, s := range found.find("cniscope", call) {
				if slices.Contains(s.above(), top) && len(found.orphans) == 0 {
					return nil
				}
			}
			seen = append(seen, found.String())
		}
		return fmt.Errorf("no whole trace with %s below %s; there is\n%s", call, top, strings.Join(seen, "\n"))
	})
	return found
}

// whole checks that a trace has all three services and all parents, and that spans lie within their parents.
func (c *cluster) whole(t *trace) {
	c.Helper()
	if got, want := t.services(), []string{"cniscope", "containerd", "kubelet"}; !slices.Equal(got, want) {
		c.Errorf("the trace is of %v, want %v", got, want)
	}
	for _, s := range t.orphans {
		c.Errorf("orphan: %s", s)
	}
	for _, s := range t.outside() {
		c.Error(s)
	}
	if c.Failed() {
		c.Log(t)
	}
}
