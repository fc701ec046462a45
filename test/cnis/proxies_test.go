//go:build linux

package cnis

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/doctor"
	"github.com/cniscope/cniscope/test/harness"
)

// Two proxies for the same services, and rules of a removed one, are found; one alone is healthy.
func TestProxies(t *testing.T) {
	if !apart(t) {
		return
	}
	n := newNode(t)
	about := []string{"service-proxies", "service-rules", "leftovers"}
	for _, mode := range []string{"iptables", "nftables"} {
		n.startProxy(mode)
		n.quiet(about...)
		n.kill(kubeProxy)
		n.finds("service-rules", "kube-proxy is gone")
		n.stopProxy()
		n.quiet(about...)
	}

	replaces := options{"kube-proxy-replacement": "true", "bpf-lb-sock": "true"}
	n.startWarmAgent(replaces)
	n.silent()
	for _, mode := range []string{"iptables", "nftables"} {
		n.startProxy(mode)
		f := n.finds("service-proxies", "two service proxies", "kube-proxy-replacement=true", "kubectl -n kube-system delete daemonset kube-proxy")
		harness.Equal(t, f.Level, doctor.Warning, "it is a")
		n.stopProxy()
	}
	n.silent()
	n.reset()

	beside := options{"kube-proxy-replacement": "false", "bpf-lb-sock": "false"}
	for _, mode := range []string{"iptables", "nftables"} {
		n.startProxy(mode)
		n.startWarmAgent(beside)
		n.silent()
		n.reset()
		n.stopProxy()
	}

	// Required by local redirect policies (Cilium's documentation).
	n.startProxy("iptables")
	n.startWarmAgent(options{"kube-proxy-replacement": "false", "bpf-lb-sock": "true"})
	n.silent()
}
