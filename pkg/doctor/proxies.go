package doctor

import (
	"cmp"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/text"
)

func oneServiceProxy(f *fact.Facts) ([]Finding, error) {
	proxy, proxyErr := liveProxy(f)
	on, onErr := replacementOn(f)
	switch { // an error matters only beside another proxy
	case len(proxy) == 0 && proxyErr == nil:
		return unserved(f), nil
	case len(proxy) == 0:
		return nil, proxyErr
	case len(on) == 0:
		return socketsOnly(f, proxy), onErr
	}
	return []Finding{Warning.finding("two service proxies: kube-proxy runs, and Cilium's replacement for it is on",
		append(proxy, on...), append([]string{
			"keep kube-proxy: cilium config set kube-proxy-replacement false",
			"or remove kube-proxy; in a new cluster: kubeadm init --skip-phases=addon/kube-proxy",
			"in this cluster: set k8sServiceHost and k8sServicePort in Cilium's Helm values to the API server's own address",
			"then delete kube-proxy: kubectl -n kube-system delete daemonset kube-proxy; " +
				"kubectl -n kube-system delete configmap kube-proxy",
			"then remove kube-proxy's rules on each node, with one of these commands",
		}, removeRules...)...)}, nil
}

func hasProxy(p fact.Process) bool { return p.Name == "k3s" || p.Name == "kubelite" }

var ofHTTPS = regexp.MustCompile(`\b(\d+\.\d+\.\d+\.\d+):443\b`)

func unserved(f *fact.Facts) []Finding {
	dns, err := netip.ParseAddr(f.DNS.Value.Server)
	if err != nil || f.LB.Value.Services > 0 || slices.ContainsFunc(f.Processes.Value, hasProxy) {
		return nil
	}
	for _, c := range f.Containers.Value {
		for _, line := range []string{c.LastLine, c.LineBefore} {
			named := ofHTTPS.FindStringSubmatch(line)
			if named == nil || !c.SandboxReady || c.Owner == "" {
				continue
			}
			address, err := netip.ParseAddr(named[1])
			if err != nil || !netip.PrefixFrom(dns, 16).Masked().Contains(address) {
				continue
			}
			return []Finding{Problem.finding(
				fact.Sayf("no service proxy runs here, and %s of pod %s/%s asks the API server at the Service address %s",
					c.Name, c.Namespace, c.Pod, named[0]),
				[]string{
					"its log line: " + fact.Clean(line),
					address.String() + " is a Service address, like the cluster's DNS " + dns.String(),
				},
				"start kube-proxy on this node again; or, if Cilium replaces it, set k8sServiceHost and k8sServicePort in "+
					"Cilium's Helm values to the API server's own address")}
		}
	}
	return nil
}

var removeRules = []string{
	"any mode, in a privileged container of kube-proxy's image with the host's network: kube-proxy --cleanup",
	"iptables: iptables-save | grep -v KUBE | iptables-restore; ip6tables-save | grep -v KUBE | " +
		"ip6tables-restore",
	"nftables: nft delete table ip kube-proxy; nft delete table ip6 kube-proxy",
	"IPVS: ipvsadm --clear; ip link delete kube-ipvs0",
}

// liveProxy ignores rules: they outlive kube-proxy, and kubelet makes further ones.
func liveProxy(f *fact.Facts) (evidence []string, err error) {
	for _, p := range f.Processes.Value {
		if p.Name == "kube-proxy" && p.HostNet {
			evidence = append(evidence, fact.Sayf("process %d is kube-proxy (%s)", p.PID, p.File))
		}
	}
	for _, c := range f.Containers.Value {
		if c.Proxy && c.SandboxReady {
			evidence = append(evidence, c.String()+" is "+c.State+", "+text.Count(c.Restarts, "restart"))
		}
	}
	return evidence, cmp.Or(f.Processes.Err, f.Containers.Err)
}

// socketsOnly notes Cilium's socket load balancing beside kube-proxy. Without node ports it comes from
// kube-proxy-replacement=false with bpf-lb-sock=true, as documented for local redirect policies.
func socketsOnly(f *fact.Facts, proxy []string) []Finding {
	lb := f.LB.Value
	if len(lb.Socket) == 0 || lb.Services == 0 {
		return nil
	}
	return []Finding{Note.finding(
		"Cilium's socket load balancing runs beside kube-proxy; its kube-proxy replacement seems to be off",
		append(proxy, inSockets(lb)), "nothing, if local redirect policies need bpf-lb-sock=true; otherwise check "+
			"kube-proxy-replacement: cilium config view")}
}

// replacementOn is evidence that Cilium replaces kube-proxy: programs and node ports, or options. Without the
// replacement, only node ports are missing.
func replacementOn(f *fact.Facts) (evidence []string, err error) {
	lb := f.LB.Value
	if len(lb.Socket) > 0 && lb.NodePorts > 0 {
		evidence = append(evidence, inSockets(lb))
	}
	if len(lb.Device) > 0 && lb.NodePorts > 0 {
		evidence = append(evidence, fact.Sayf("Cilium serves node ports in BPF: %s; %s", attached(lb.Device), filled(lb)))
	}
	for _, p := range f.Processes.Value {
		for _, s := range p.Settings {
			if p.HostNet && s.Replaces() {
				evidence = append(evidence, fact.Sayf("process %d, %s: %s=%s (%s)", p.PID, p.Name, s.Key, s.Value, s.From))
			}
		}
	}
	for _, c := range f.Containers.Value {
		for _, s := range c.Settings {
			if c.SandboxReady && s.Replaces() {
				evidence = append(evidence, c.String()+fact.Sayf(": %s=%s (%s)", s.Key, s.Value, s.From))
			}
		}
	}
	return evidence, cmp.Or(f.LB.Err, f.Processes.Err, f.Containers.Err)
}

func inSockets(lb fact.LB) string {
	return fact.Sayf("Cilium's socket load balancing is on: %s; %s", attached(lb.Socket), filled(lb))
}

func attached(programs []fact.Attached) string {
	return fact.List(fact.Each(programs, func(p fact.Attached) string {
		return "program " + p.Program + " is attached to " + p.To
	}))
}

func filled(lb fact.LB) string {
	ports := "none for a node port"
	if lb.NodePorts > 0 {
		ports = fact.Sayf("%d for node ports", lb.NodePorts)
	}
	return fact.Sayf("%s holds %d entries, %s", strings.Join(lb.Maps, " and "), lb.Services, ports)
}

func rulesHaveAnOwner(f *fact.Facts) ([]Finding, error) {
	byTable := map[string][]string{}
	ipvs := slices.ContainsFunc(f.Network.Value.Links, func(l fact.Link) bool { return l.Name == "kube-ipvs0" })
	for _, c := range f.Chains.Value {
		if ofKubeProxy(c) {
			table := c.Backend + " " + c.Family + " " + c.Table
			byTable[table] = append(byTable[table], c.Name)
		}
	}
	if len(byTable) == 0 && !ipvs {
		return nil, nil
	}
	switch proxy, err := liveProxy(f); {
	case len(proxy) > 0:
		return nil, nil
	case err != nil:
		return nil, err
	case slices.ContainsFunc(f.Processes.Value, func(p fact.Process) bool { return p.HostNet && hasProxy(p) }):
		return nil, nil
	}
	var evidence []string
	for table, chains := range byTable {
		slices.Sort(chains)
		evidence = append(evidence, fact.Sayf("%s: %s (%s)", table, text.Count(len(chains), "chain"),
			fact.List(chains)))
	}
	slices.Sort(evidence)
	if ipvs {
		evidence = append(evidence, "the interface kube-ipvs0")
	}
	return []Finding{Warning.finding(
		"kube-proxy is gone, but its rules remain and send packets for Services to old endpoints",
		append(evidence, "kube-proxy runs neither as a process nor in a container"), removeRules...)}, nil
}

// ofKubeProxy excludes kubelet's own chains (KUBE-KUBELET-CANARY, KUBE-FIREWALL, KUBE-MARK-*, before 1.28
// KUBE-POSTROUTING).
func ofKubeProxy(c fact.Chain) bool {
	if c.Backend == "nftables" && c.Table == "kube-proxy" {
		return true
	}
	return fact.Matches([]string{
		"KUBE-SERVICES", "KUBE-NODEPORTS", "KUBE-EXTERNAL-SERVICES", "KUBE-PROXY-CANARY", "KUBE-PROXY-FIREWALL",
		"KUBE-LOAD-BALANCER", "KUBE-NODE-PORT", "KUBE-SVC-*", "KUBE-SVL-*", "KUBE-SEP-*", "KUBE-EXT-*", "KUBE-FW-*",
		"KUBE-XLB-*",
	}, c.Name)
}
