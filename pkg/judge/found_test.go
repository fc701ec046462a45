package judge

import (
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/test/harness"
)

const moved = `failed to set bridge addr: "cni0" already has an IP address different from 10.244.2.1/24`

// failing is an ADD that fails with a message, and what was found then.
func failing(plug, message string, f *event.Found, acts ...func(*model.Image)) *model.Operation {
	acts = append(acts, wrote(message))
	op := add(with(seen(plugin(plug, 0, 50), acts...), exit(1)))
	op.Calls[0].Found, op.Calls[0].Network = f, "pods"
	op.Wall = op.Mono + int64(2*time.Hour+time.Second) - op.Calls[0].End
	return op
}

func made(peer string) func(*model.Image) {
	return func(im *model.Image) {
		fact(im, from(1, 2), &model.Request{Request: &event.Request{Name: "RTM_NEWLINK", Interface: event.Interface{Name: "eth0", Peer: peer}}})
	}
}

// The remedy follows from what a look found; the same words of another state have another remedy, or none.
func TestARemedyFollowsFromWhatWasFound(t *testing.T) {
	bridge := func(ports, ofPods int, others ...string) *event.Found {
		f := &event.Found{Kind: event.FoundBridge, Name: "cni0", Type: "bridge", Addresses: []string{"10.244.1.1/24"}, Ports: ports, OfPods: ofPods, Others: others}
		for range min(ofPods, 1) {
			f.Pods = append(f.Pods, event.Pod{Namespace: "shop", Name: "web-0"})
		}
		return f
	}
	eth1 := func(name, kind string) *event.Found {
		return &event.Found{Kind: event.FoundMaster, Name: "eth1", Type: "veth", Master: name, MasterType: kind}
	}
	const busy = "failed to create macvlan: device or resource busy"
	const full = "failed to allocate for range 0: no IP addresses available in range set: 10.42.2.1-10.42.2.254"
	leases := func(leased, stale int) *event.Found {
		return &event.Found{Kind: event.FoundLeases, Name: "pods", Leased: leased, Stale: stale}
	}
	const kind = "failed to create ipvlan: operation not supported"
	module := func(m event.ModuleState) *event.Found {
		return &event.Found{Kind: event.FoundModule, Name: "ipvlan", Module: m, Kernel: "6.1.0-13"}
	}
	const refused = "Multus: [shop/web-0]: error getting pod: Unauthorized"
	token := func(expires int64) *event.Found {
		return &event.Found{Kind: event.FoundToken, Name: "multus.kubeconfig", Expires: expires}
	}
	evil := bridge(0, 0)
	evil.Name = "cni0;x"
	rulings(t, map[string]ruling{
		"a recording names a bridge": {
			op: failing("bridge", moved, evil), cause: CauseFailed, says: `cni0;x has`, remedy: `^run ip link delete 'cni0;x', `, report: "flannel-io/flannel#1850",
		},
		"stale leases": {
			op: failing("host-local", full, leases(253, 250)), cause: CauseFailed,
			says: `; network "pods" has 253 leases, 250 of them stale$`, remedy: `^run cniscope doctor: leaked-leases`, report: "k3s-io/k3s#4682",
		},
		"a small range": {
			op: failing("host-local", full, leases(253, 0)), cause: CauseFailed,
			says: `has 253 leases$`, remedy: `^give network "pods" a range larger`, report: "k3s-io/k3s#4682",
		},
		"no lease there": {
			op: failing("host-local", full, leases(0, 0)), cause: CauseFailed,
			says: `"pods" has no lease$`, remedy: `^run cniscope doctor: .*if no lease is stale`, report: "k3s-io/k3s#4682",
		},
		"a module that is not loaded": {
			op: failing("ipvlan", kind, module(event.ModuleThere)), cause: CauseFailed,
			says: `; module ipvlan is not loaded$`, remedy: `^run modprobe ipvlan;`,
		},
		"a module that is loaded": {
			op: failing("ipvlan", kind, module(event.ModuleLoaded)), cause: CauseFailed,
			says: `; the kernel has module ipvlan$`, remedy: `^$`,
		},
		"a module that the kernel lacks": {
			op: failing("ipvlan", kind, module(event.ModuleAbsent)), cause: CauseFailed,
			says: `; kernel 6.1.0-13 has no module ipvlan$`, remedy: `^install the package`,
		},
		"removed modules": {
			op: failing("ipvlan", kind, module(event.ModuleRemoved)), cause: CauseFailed,
			says: `no directory for the running kernel 6.1.0-13$`, remedy: `^drain the node .* and restart it: an upgrade`,
		},
		"an expired token": {
			op: failing("multus", refused, token(1)), cause: CauseFailed,
			says: `; the token in multus.kubeconfig expired 2h0m0s before$`, remedy: `^restart Multus`, report: "k8snetworkplumbingwg/multus-cni#852",
		},
		"a token that is valid": {
			op: failing("multus", refused, token(7201+3600)), cause: CauseFailed,
			says: `; the token in multus.kubeconfig is valid for another 1h0m0s, so it was revoked$`, remedy: `^restart Multus`, report: "k8snetworkplumbingwg/multus-cni#852",
		},
		"a token without an end": {
			op: failing("multus", refused, token(0)), cause: CauseFailed,
			says: `; the token in multus.kubeconfig does not expire$`, remedy: `^restart Multus`, report: "k8snetworkplumbingwg/multus-cni#852",
		},
		"a bridge without a port": {
			op: failing("bridge", moved, bridge(0, 0)), cause: CauseFailed,
			says: `10.244.2.1/24"; cni0 has 10.244.1.1/24 and no port$`, remedy: `^run ip link delete cni0, because this bridge has no port`, report: "flannel-io/flannel#1850",
		},
		"only with the port of the failed call": {
			op: failing("bridge", moved, bridge(1, 0, "veth1"), made("veth1")), cause: CauseFailed,
			says: `and no port$`, remedy: `^run ip link delete cni0, because this bridge has no port`, report: "flannel-io/flannel#1850",
		},
		"with a port of another": {
			op: failing("bridge", moved, bridge(2, 0, "veth1", "tap0"), made("veth1")), cause: CauseFailed,
			says: `10.244.1.1/24 and 1 port$`, remedy: `^run ip -d link show master cni0 to list`, report: "flannel-io/flannel#1850",
		},
		"with ports of pods": {
			op: failing("bridge", moved, bridge(3, 2, "veth1"), made("veth1")), cause: CauseFailed,
			says: `and 2 ports, 2 of pods: shop/web-0, 1 more$`, remedy: `^give each network .*move the pods off cni0 \(kubectl drain NODE`, report: "flannel-io/flannel#1850",
		},
		"that is no bridge": {
			op: failing("bridge", moved, &event.Found{Kind: event.FoundBridge, Name: "eth0", Type: "veth"}), cause: CauseFailed,
			says: `; eth0 has no address and no port$`, remedy: `^$`, report: "flannel-io/flannel#1850",
		},
		"that is gone": {
			op: failing("bridge", moved, &event.Found{Kind: event.FoundBridge, Name: "cni0", Absent: true}), cause: CauseFailed,
			says: `; cni0 does not exist any more$`, remedy: `^$`, report: "flannel-io/flannel#1850",
		},
		"that was not looked at": {
			op: failing("bridge", moved, &event.Found{Kind: event.FoundBridge, Unseen: "there was no answer in time"}), cause: CauseFailed,
			says: `; the bridge was not looked at: there was no answer in time$`, remedy: `^give each network .*move the pods off cni0`, report: "flannel-io/flannel#1850",
		},
		"full": {
			op: failing("bridge", `failed to connect "veth1" to bridge cni0: exchange full`, &event.Found{Kind: event.FoundPorts, Name: "cni0", Ports: 1023, OfPods: 900}), cause: CauseFailed,
			says: `; cni0 has no address and 1023 ports`, remedy: `^lower maxPods`, report: "weaveworks/weave#3258",
		},
		"a master that is a port of a bridge": {
			op: failing("macvlan", busy, eth1("br0", "bridge")), cause: CauseFailed,
			says: `; eth1 is a port of br0 \(bridge\)$`, remedy: `^set master in the CNI configuration to br0`, report: "k8snetworkplumbingwg/multus-cni#1339",
		},
		"a master that is a port of Open vSwitch": {
			op: failing("macvlan", busy, eth1("ovs-system", "openvswitch")), cause: CauseFailed,
			says: `; eth1 is a port of ovs-system \(openvswitch\)$`, remedy: `^take another master`, report: "k8snetworkplumbingwg/multus-cni#1339",
		},
		"a master that is no port": {
			op: failing("macvlan", busy, eth1("", "")), cause: CauseFailed,
			says: `; eth1 is not a port of another interface$`, remedy: `^take another master`, report: "k8snetworkplumbingwg/multus-cni#1339",
		},
	})
	op := failing("bridge", moved, bridge(2, 2))
	if v := strict.Judge(op).Calls[op.Calls[0]].Verdict; v.Own == "" {
		t.Error("pods of other namespaces are named to all")
	} else {
		harness.Equal(t, v.Own[len(v.Own)-len("; cni0 has 10.244.1.1/24 and 2 ports"):], "; cni0 has 10.244.1.1/24 and 2 ports")
	}
}

// A call waits for the look that its known failure names.
func TestWhatAFailedCallWants(t *testing.T) {
	for message, want := range map[string]*event.Want{
		moved: {Kind: event.FoundBridge, Network: "pods", Name: "cni0"},
		`failed to connect "veth1" to bridge br1: exchange full`: {Kind: event.FoundPorts, Network: "pods", Name: "br1"},
		"exchange full": {Kind: event.FoundPorts, Network: "pods"},
		"failed to create macvlan: device or resource busy": {Kind: event.FoundMaster, Network: "pods"},
		"invalid VLAN ID 5000":                              nil,
		"no way":                                            nil,
	} {
		_, got := Wants(failing("p", message, nil))
		harness.DeepEqual(t, got, want, message)
	}
	_, got := Wants(failing("multus", "error getting pod: Unauthorized", nil))
	harness.DeepEqual(t, got, &event.Want{Kind: event.FoundToken, Network: "pods", Name: "/etc/cni/net.d/multus.d/multus.kubeconfig"})
	delegated := failing("macvlan", "failed to create macvlan: device or resource busy", nil)
	delegated.Calls[0].Runs[0].Run.Configuration = &event.Configuration{Network: "attached", Master: "eth1"}
	_, got = Wants(delegated)
	harness.DeepEqual(t, got, &event.Want{Kind: event.FoundMaster, Network: "attached", Name: "eth1"})
	if call, want := Wants(add(plugin("bridge", 0, 50))); call != nil || want != nil {
		t.Errorf("a call that did not fail wants %+v", want)
	}
}
