package judge

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/cniscope/cniscope/pkg/model"
)

// special is what holds of a cause only beside one CNI, which the names of its plugins tell. Only the administrator of
// a node installs plugins; a name of an agent, or its answer, may come from a pod.
type special struct {
	cause          Cause
	plugins        string // separated by blanks
	remedy, report string
}

var specials = []special{
	{CausePowerShell, "antrea", "", "antrea-io/antrea#4859"},
	{CauseAgent, "cilium-cni", "", "cilium/cilium#45103"},
	{CauseBusy, "cilium-cni", " (--api-rate-limit)", "cilium/cilium#22023"},
	{CauseAPIServer, "whereabouts", "", "k8snetworkplumbingwg/whereabouts#313"},
	{CauseLockFile, "azure-vnet azure-vnet-ipam", "", "Azure/azure-container-networking#464"},
}

// beside adds to a verdict what is special to a plugin's CNI.
func (v Verdict) beside(plugin string) Verdict {
	for _, s := range specials {
		if s.cause == v.Cause && slices.Contains(strings.Fields(s.plugins), plugin) {
			v.Remedy, v.Report = v.Remedy+s.remedy, s.report
		}
	}
	return v
}

// silent is a remedy for a peer that did not answer, and whose process was not found; none for an unknown kind.
func silent(c *model.Connection, plugin string) string {
	if strings.HasPrefix(c.Address, "/") {
		return fmt.Sprintf("run ss -xlp src %s to find the process that listens there; if its /proc/PID/status says "+
			"State: T, run kill -CONT PID; otherwise read its log of that time", c.Address)
	}
	to, err := netip.ParseAddrPort(c.Address)
	if known := ofService(c, plugin); known != "" || err != nil || !to.Addr().IsLoopback() {
		return known
	}
	return fmt.Sprintf("run ss -tlnp 'sport = :%d' to find the process that listens there; if its /proc/PID/status "+
		"says State: T, run kill -CONT PID; otherwise read its log of that time", to.Port())
}

func ofService(c *model.Connection, plugin string) string {
	to, err := netip.ParseAddrPort(c.Address)
	if err != nil {
		return ""
	}
	for _, known := range services {
		if known.address == c.Address && slices.Contains(strings.Fields(known.plugins), plugin) {
			return known.remedy
		}
	}
	host := to.Addr().String()
	switch port := to.Port(); {
	case host == "169.254.169.254" || host == "fd00:ec2::254":
		return fmt.Sprintf("run ip route get %s and nft list ruleset, and remove the route or rule that blocks the cloud's "+
			"metadata service, until curl -m 2 http://%s/ answers on this node", host, to)
	case isAPIServerAddress(to):
		return "run kubectl get --raw '/readyz?verbose' and fix what fails; if nothing fails, measure packet loss between " +
			"this node and the API server (ping, nstat TcpRetransSegs)"
	case port == 53:
		return fmt.Sprintf("start the DNS server at %s, or set another nameserver in this node's /etc/resolv.conf, until "+
			"dig @%s -p 53 . answers on this node", c.Address, host)
	case port == 2379 || port == 4001:
		return fmt.Sprintf("run etcdctl --endpoints=%s endpoint health with client certificates, and fix what it "+
			"reports (no leader, a slow disk); if it gets no answer, fix the way there if ping %s fails, else restart etcd "+
			"or the proxy that listens there", c.Address, host)
	case port == 67 || port == 547:
		return fmt.Sprintf("start the DHCP server or relay at %s; if it runs, read its log of that time: it may have no "+
			"free lease for this network", host)
	}
	return ""
}

// service is a server of addresses on the node, which only its own plugins ask at that address.
type service struct{ plugins, address, remedy string }

var services = []service{
	{"aws-cni", "127.0.0.1:50051", "read /var/log/aws-routed-eni/ipamd.log of that time; delete the pod aws-node " +
		"of this node if ipamd hangs: its DaemonSet starts a new one"},
	{"azure-ipam azure-vnet", "127.0.0.1:10090", "read the log of azure-cns on this node (kubectl -n kube-system " +
		"logs POD); delete its pod if it hangs: its DaemonSet starts a new one"},
	{"weave-net weave-ipam", "127.0.0.1:6784", "run kubectl -n kube-system exec POD -c weave -- /home/weave/weave " +
		"--local status ipam for the weave-net pod of this node; delete that pod if it hangs"},
}
