//go:build linux

package doctor

import (
	"os"
	"testing"

	"github.com/cniscope/cniscope/pkg/doctor"
	"github.com/cniscope/cniscope/test/rig"
)

// Only a live kube-proxy and an enabled replacement make a conflict.
func TestTwoServiceProxies(t *testing.T) {
	n := newNode(t, rig.Options{})
	conflict := []string{
		"two service proxies", "--skip-phases=addon/kube-proxy",
		"kubectl -n kube-system delete daemonset kube-proxy; kubectl -n kube-system delete configmap kube-proxy",
	}
	tests := []struct {
		name string
		has  []part
		// says are the texts of service-proxies, rules those of service-rules. Empty: silent.
		says, rules []string
		note        bool // a note is not a finding
	}{
		{name: "kube-proxy alone", has: []part{kubeProxyProcess, iptablesRules}},
		{name: "kube-proxy alone, as a container", has: []part{kubeProxyContainer, legacyRules}},
		{name: "kube-proxy alone, nftables mode", has: []part{kubeProxyProcess, nftablesRules}},
		{name: "replacement alone", has: []part{socketLB, nodePorts, ciliumTold}},
		{name: "replacement alone, with kubelet's own chains", has: []part{socketLB, kubeletRules}},
		{name: "kubelet's own chains", has: []part{kubeletRules}},
		{name: "Cilium without replacement beside kube-proxy", has: []part{kubeProxyProcess, iptablesRules, ciliumWithout}},
		{name: "kube-proxy in another network", has: []part{kubeProxyElsewhere, socketLB}},
		{name: "somebody's container of that name", has: []part{tenant, socketLB}},
		{
			name: "Cilium's sockets beside kube-proxy, for local redirect policies", has: []part{kubeProxyProcess, socketsOnly}, note: true,
			says: []string{"its kube-proxy replacement seems to be off", "cil_sock4_conne is attached to cgroup", "none for a node port"},
		},
		{
			name: "the seed: kube-proxy by kubeadm, and Cilium's socket load balancing", has: []part{kubeProxyProcess, iptablesRules, socketLB},
			says: append(conflict, "is kube-proxy (/", "cil_sock4_conne is attached to cgroup", "map cilium_lb4_serv holds 2 entries"),
		},
		{
			name: "a kube-proxy that crashes", has: []part{kubeProxyCrashing, socketLB},
			says: append(conflict, "container kube-proxy of pod kube-system/kube-proxy-x", "is exited, 7 restarts"),
		},
		{
			name: "Cilium's node ports", has: []part{kubeProxyProcess, nftablesRules, nodePorts},
			says: append(conflict, "cil_from_netdev is attached to interface eth0", "1 for node ports"),
		},
		{
			name: "Cilium was told to", has: []part{kubeProxyContainer, ciliumTold},
			says: append(conflict, "cilium-agent: kube-proxy-replacement=true (command line)", "container kube-proxy"),
		},
		{
			name: "Cilium does not come up, and was told to", has: []part{kubeProxyProcess, ciliumCrashing},
			says: append(conflict, "container cilium-agent", "kube-proxy-replacement=true (its ConfigMap, "+os.TempDir()),
		},
		{name: "leftovers in nf_tables", has: []part{iptablesRules}, rules: []string{"kube-proxy is gone", "nftables ip nat: 2 chains", "KUBE-SVC-ABC", "iptables-save | grep -v KUBE | iptables-restore"}},
		{name: "leftovers in legacy iptables", has: []part{legacyRules}, rules: []string{"iptables-legacy ip nat: 2 chains", "iptables-legacy ip6 nat: 1 chain"}},
		{name: "leftovers of nftables mode", has: []part{nftablesRules, socketLB}, rules: []string{"nftables ip kube-proxy", "nft delete table ip kube-proxy"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newScene(t, n)
			for _, p := range test.has {
				p(s)
			}
			report, level := s.examine(), doctor.Warning
			if test.note {
				level = doctor.Note
			}
			expect(t, report, "service-proxies", level, test.says)
			expect(t, report, "service-rules", doctor.Warning, test.rules)
		})
	}
}

func expect(t *testing.T, report doctor.Report, name string, level doctor.Level, says []string) {
	t.Helper()
	if len(says) == 0 {
		silent(t, report, name)
		return
	}
	finds(t, report, name, level, says...)
}
