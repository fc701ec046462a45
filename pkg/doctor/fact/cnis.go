package fact

import (
	"slices"
	"strings"

	"github.com/cniscope/cniscope/pkg/event"
)

// CNI is what one CNI installs, runs and leaves behind.
type CNI struct {
	Name    string
	Plugins []string // plugin types in its CNI configuration
	Agents  []string
	Pods    []string // patterns of its pods' names; their first containers may mount nothing
	// Links are interfaces ("cali*"), Chains firewall rules.
	Links, Chains []string
	Remedy        string
}

// CNIs lists the known CNIs, without shared marks (cni0, and tunl0, which the ipip module makes).
func CNIs() []CNI {
	return []CNI{
		{
			Name: "Flannel", Plugins: []string{"flannel"}, Agents: []string{"flanneld", "kube-flannel", "k3s"},
			Pods:  []string{"kube-flannel-*", "canal-*"},
			Links: []string{"flannel.*", "flannel-v6.*"}, Chains: []string{"FLANNEL-*"},
			Remedy: "ip link delete flannel.1; rm -r /run/flannel",
		},
		{
			Name: "Calico", Plugins: []string{"calico", "calico-ipam"}, Agents: []string{"calico-node", "calico-felix"},
			Pods:  []string{"calico-node-*"},
			Links: []string{"cali*", "vxlan.calico", "wireguard.cali", "bpfin.cali", "bpfout.cali"}, Chains: []string{"cali-*"},
			Remedy: "remove its interfaces (ip link delete NAME) and its chains (cali-*); a restart of the node does both",
		},
		{
			Name: "Cilium", Plugins: []string{"cilium-cni"}, Agents: []string{"cilium-agent"}, Pods: []string{"cilium-*"},
			Links:  []string{"cilium_host", "cilium_net", "cilium_vxlan", "cilium_geneve"},
			Chains: []string{"CILIUM_*", "OLD_CILIUM_*"},
			Remedy: "cilium-dbg post-uninstall-cleanup, or: ip link delete cilium_host; ip link delete cilium_vxlan; rm -r " +
				"/sys/fs/bpf/tc/globals/cilium_* /sys/fs/bpf/cilium",
		},
		{
			Name: "Antrea", Plugins: []string{"antrea"}, Agents: []string{"antrea-agent"}, Pods: []string{"antrea-agent-*"},
			Links: []string{"antrea-gw0", "antrea-tun0", "antrea-egress0", "antrea-ingress0"}, Chains: []string{"ANTREA-*"},
			Remedy: "ip link delete antrea-gw0, and remove its Open vSwitch bridge br-int",
		},
		{
			Name: "Weave Net", Plugins: []string{"weave-net"}, Agents: []string{"weaver", "weave"},
			Pods:  []string{"weave-net-*"},
			Links: []string{"weave", "vethwe-*", "vxlan-6784"}, Chains: []string{"WEAVE", "WEAVE-*"},
			Remedy: "weave reset, or: ip link delete weave; ip link delete datapath",
		},
		{
			Name: "kube-router", Plugins: nil, Agents: []string{"kube-router", "k3s"}, Pods: []string{"kube-router-*"},
			Links: []string{"kube-bridge", "kube-dummy-if"}, Chains: []string{"KUBE-ROUTER-*"},
			Remedy: "kube-router --cleanup-config, or: ip link delete kube-bridge",
		},
		{
			Name: "the AWS VPC CNI", Plugins: []string{"aws-cni"}, Agents: []string{"aws-k8s-agent", "aws-node"},
			Pods:   []string{"aws-node-*"},
			Chains: []string{"AWS-SNAT-CHAIN-*", "AWS-CONNMARK-CHAIN-*"},
			Remedy: "remove its chains (AWS-*) from the nat table; a restart of the node does that",
		},
		{
			Name: "Azure CNI", Plugins: []string{"azure-vnet"}, Agents: []string{"azure-cns", "azure-vnet-telemetry"},
			Pods:  []string{"azure-cns-*"},
			Links: []string{"azure0", "azv*"}, Remedy: "ip link delete azure0; rm /var/run/azure-vnet.json",
		},
		{
			Name: "OVN-Kubernetes", Plugins: []string{"ovn-k8s-cni-overlay"},
			Agents: []string{"ovnkube", "ovnkube-node", "ovnkube-controller"}, Pods: []string{"ovnkube-node-*"},
			Links: []string{"ovn-k8s-mp0"}, Remedy: "remove its Open vSwitch bridge br-int",
		},
	}
}

// Owns reports whether a network has a plugin of this CNI.
func (c CNI) Owns(n event.Network) bool {
	return slices.ContainsFunc(n.Plugins, func(p event.Plugin) bool { return slices.Contains(c.Plugins, p.Type) })
}

// OwnerOf returns a network's CNI.
func OwnerOf(n event.Network) (CNI, bool) {
	for _, c := range CNIs() {
		if c.Owns(n) {
			return c, true
		}
	}
	return CNI{}, false
}

// OwnerOfPlugin returns a plugin's CNI.
func OwnerOfPlugin(plugin string) (CNI, bool) {
	return OwnerOf(event.Network{Plugins: []event.Plugin{{Type: plugin}}})
}

// OwnerOfPod returns the name of a pod's CNI, or "".
func OwnerOfPod(pod string) string {
	for _, c := range CNIs() {
		if Matches(c.Pods, pod) {
			return c.Name
		}
	}
	return ""
}

// AgentNames lists all CNIs' agents.
func AgentNames() (all []string) {
	for _, c := range CNIs() {
		all = append(all, c.Agents...)
	}
	return all
}

// Matches compares a name with patterns, which may end in *.
func Matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		if prefix, ok := strings.CutSuffix(p, "*"); ok {
			return strings.HasPrefix(name, prefix)
		}
		return p == name
	})
}

// CiliumSettings are the options by which cilium-agent replaces kube-proxy. bpf-lb-sock may be set beside kube-proxy.
func CiliumSettings() []string { return []string{"kube-proxy-replacement", "enable-node-port"} }

// Replaces reports whether an option switches that on. "strict" and "probe" are of Cilium before 1.14; its "partial"
// leaves it to other options.
func (s Setting) Replaces() bool {
	return slices.Contains([]string{"true", "strict", "probe"}, strings.ToLower(s.Value))
}
