//go:build linux

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

// An operator's searches in Jaeger find exactly the intended traces.
func TestSearchesAnOperatorWouldType(t *testing.T) {
	s := set(t, false, rig.Options{
		Networks: []rig.Network{{Plugins: []rig.Plugin{rig.Bridge(), rig.Test("sleeper")}}},
		Plugins: map[string][]byte{"sleeper": rig.Script(`
case "$CNI_COMMAND $CNI_ARGS" in
"ADD "*K8S_POD_NAME=slow-*) sleep 0.4 ;;
"ADD "*K8S_POD_NAME=broken-*) fail 11 "no" ;;
esac`)},
	}, scope.Options{Node: "node-a"})
	address := map[string]string{}
	for _, p := range []struct{ namespace, name string }{{"shop", "web-0"}, {"shop", "web-1"}, {"bank", "web-0"}, {"shop", "slow-0"}} {
		id := s.pod(rig.PodOptions{Namespace: p.namespace, Name: p.name, UID: p.namespace + p.name})
		status, err := s.rig.PodStatus(s.ctx, id)
		harness.Check(t, err)
		address[p.namespace+"/"+p.name] = status.Status.Network.Ip
	}
	if _, err := s.rig.RunPod(s.ctx, rig.PodOptions{Namespace: "shop", Name: "broken-0"}); err == nil {
		t.Fatal("the pod whose plugin fails was run")
	}
	all := s.calls("ADD", 10)
	traceOf := map[string]string{} // setup traces by pod
	for _, x := range only(all, "call", "CNI ADD") {
		traceOf[x.text("k8s.namespace.name")+"/"+x.text("k8s.pod.name")] = x.trace()
	}
	for _, test := range []struct {
		what string
		tags map[string]string
		want []string
	}{
		{"one pod", map[string]string{"k8s.namespace.name": "shop", "k8s.pod.name": "web-0", "cni.command": "ADD"}, []string{"shop/web-0"}},
		{"slow commands of one node", map[string]string{"cniscope.slow": "true", "cniscope.kind": "command", "k8s.node.name": "node-a"}, []string{"shop/slow-0"}},
		{"slow commands of another node", map[string]string{"cniscope.slow": "true", "k8s.node.name": "node-b"}, nil},
		{"failed calls", map[string]string{"cniscope.failed": "true", "k8s.node.name": "node-a"}, []string{"shop/broken-0"}},
		{"who had this address", map[string]string{"k8s.pod.ip": address["bank/web-0"], "cniscope.sandbox_running": "true"}, []string{"bank/web-0"}},
	} {
		t.Run(test.what, func(t *testing.T) {
			found, err := s.jaeger.Search(s.ctx, "cniscope", test.tags)
			harness.Check(t, err)
			var want []string
			for _, pod := range test.want {
				want = append(want, traceOf[pod])
			}
			slices.Sort(want)
			if !slices.Equal(found, want) {
				t.Errorf("%s: found %v, want %v (%v)", fmt.Sprint(test.tags), found, want, slices.Sorted(maps.Keys(traceOf)))
			}
		})
	}
}
