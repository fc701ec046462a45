package doctor

import (
	"slices"
	"strings"

	"github.com/cniscope/cniscope/pkg/event"
)

// cni is how one CNI is recognised: by what it installs, what it runs and what it leaves
// behind.
type cni struct {
	name string
	// plugins are the types it owns in a chain.
	plugins []string
	// agents are programs and containers of it that run as long as it is in use.
	agents []string
	// pods are names of its pods on a node, whose first containers need not mount anything.
	pods []string
	// k3s has Flannel and kube-router's network policies in it.
	// links are interfaces it makes on the node ("cali*"), chains its firewall rules.
	links, chains []string
	remedy        string
}

// cnis are those that leave traces on a node. What several share (cni0, tunl0, which the
// ipip module makes by itself) is no trace of any.
func cnis() []cni {
	return []cni{
		{
			name: "Flannel", plugins: []string{"flannel"}, agents: []string{"flanneld", "kube-flannel", "k3s"}, pods: []string{"kube-flannel-*", "canal-*"},
			links: []string{"flannel.*", "flannel-v6.*"}, chains: []string{"FLANNEL-*"},
			remedy: "ip link delete flannel.1; rm -r /run/flannel",
		},
		{
			name: "Calico", plugins: []string{"calico", "calico-ipam"}, agents: []string{"calico-node", "calico-felix"}, pods: []string{"calico-node-*"},
			links: []string{"cali*", "vxlan.calico", "wireguard.cali", "bpfin.cali", "bpfout.cali"}, chains: []string{"cali-*"},
			remedy: "remove its interfaces (ip link delete NAME) and its chains (cali-*); a restart of the node does both",
		},
		{
			name: "Cilium", plugins: []string{"cilium-cni"}, agents: []string{"cilium-agent"}, pods: []string{"cilium-*"},
			links: []string{"cilium_host", "cilium_net", "cilium_vxlan", "cilium_geneve"}, chains: []string{"CILIUM_*", "OLD_CILIUM_*"},
			remedy: "cilium-dbg post-uninstall-cleanup, or: ip link delete cilium_host; ip link delete cilium_vxlan; rm -r /sys/fs/bpf/tc/globals/cilium_* /sys/fs/bpf/cilium",
		},
		{
			name: "Antrea", plugins: []string{"antrea"}, agents: []string{"antrea-agent"}, pods: []string{"antrea-agent-*"},
			links: []string{"antrea-gw0", "antrea-tun0", "antrea-egress0", "antrea-ingress0"}, chains: []string{"ANTREA-*"},
			remedy: "ip link delete antrea-gw0, and remove its Open vSwitch bridge br-int",
		},
		{
			name: "Weave Net", plugins: []string{"weave-net"}, agents: []string{"weaver", "weave"}, pods: []string{"weave-net-*"},
			links: []string{"weave", "vethwe-*", "vxlan-6784"}, chains: []string{"WEAVE", "WEAVE-*"},
			remedy: "weave reset, or: ip link delete weave; ip link delete datapath",
		},
		{
			name: "kube-router", plugins: nil, agents: []string{"kube-router", "k3s"}, pods: []string{"kube-router-*"},
			links: []string{"kube-bridge", "kube-dummy-if"}, chains: []string{"KUBE-ROUTER-*"},
			remedy: "kube-router --cleanup-config, or: ip link delete kube-bridge",
		},
		{
			name: "the AWS VPC CNI", plugins: []string{"aws-cni"}, agents: []string{"aws-k8s-agent", "aws-node"}, pods: []string{"aws-node-*"},
			chains: []string{"AWS-SNAT-CHAIN-*", "AWS-CONNMARK-CHAIN-*"},
			remedy: "remove its chains (AWS-*) from the nat table; a restart of the node does that",
		},
		{
			name: "Azure CNI", plugins: []string{"azure-vnet"}, agents: []string{"azure-cns", "azure-vnet-telemetry"}, pods: []string{"azure-cns-*"},
			links: []string{"azure0", "azv*"}, remedy: "ip link delete azure0; rm /var/run/azure-vnet.json",
		},
		{
			name: "OVN-Kubernetes", plugins: []string{"ovn-k8s-cni-overlay"}, agents: []string{"ovnkube", "ovnkube-node", "ovnkube-controller"}, pods: []string{"ovnkube-node-*"},
			links: []string{"ovn-k8s-mp0"}, remedy: "remove its Open vSwitch bridge br-int",
		},
	}
}

// owns tells whether a network is of this CNI.
func (c cni) owns(n event.Network) bool {
	return slices.ContainsFunc(n.Plugins, func(p event.Plugin) bool { return slices.Contains(c.plugins, p.Type) })
}

// ownerOf finds whose network it is.
func ownerOf(n event.Network) (cni, bool) {
	for _, c := range cnis() {
		if c.owns(n) {
			return c, true
		}
	}
	return cni{}, false
}

// runs says what of this CNI runs here, or is meant to; empty if nothing.
func (c cni) runs(f *Facts) string {
	for _, p := range f.Processes.Value {
		if p.HostNet && slices.Contains(c.agents, p.Name) {
			return sayf("process %d is %s", p.PID, p.Name)
		}
	}
	for _, k := range f.Containers.Value {
		if k.SandboxReady && (slices.Contains(c.agents, k.Name) || slices.Contains(c.agents, strings.TrimPrefix(k.Name, "install-"))) {
			return sayf("container %s of pod %s/%s is %s", k.Name, k.Namespace, k.Pod, k.State)
		}
	}
	return ""
}

// ownerOfPod is the name of the CNI that a pod is of; empty if of none.
func ownerOfPod(pod string) string {
	for _, c := range cnis() {
		if matches(c.pods, pod) {
			return c.name
		}
	}
	return ""
}

// agentNames are all agents, for whoever looks through processes and containers.
func agentNames() (all []string) {
	for _, c := range cnis() {
		all = append(all, c.agents...)
	}
	return all
}

// matches tells whether a name fits one of the patterns, of which only the end may be *.
func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		if prefix, ok := strings.CutSuffix(p, "*"); ok {
			return strings.HasPrefix(name, prefix)
		}
		return p == name
	})
}
