package evidence

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

const idOne, idTwo = "5b2919415cea791dd4ddff000f46e4ada5386e0c3147ae17ac5eebb82e008418", "0000000000001111dd4ddff000f46e4ada5386e0c3147ae17ac5eebb82e00841"

func hashOf(id string) string {
	sum := sha1.Sum([]byte(id))
	return hex.EncodeToString(sum[:])[:6]
}

func TestWhatNamesASandbox(t *testing.T) {
	all := Sandboxes{}
	all.Begin(&event.Call{ContainerID: idOne, NetNS: "/run/netns/cni-786877ce", IfName: "eth0", Pod: event.Pod{Name: "statefuldb-6cqff"}}, "", false)
	all.Begin(&event.Call{ContainerID: idTwo, NetNS: "/run/netns/cni-0bdc", IfName: "eth0", Pod: event.Pod{Name: "web-1"}}, "", false)
	all.Begin(&event.Call{ContainerID: "by-hand", NetNS: "/run/netns/c1", IfName: "eth0"}, "", false)
	all.learn(idOne, &event.Enter{NetNS: event.Namespace{Key: "7", Label: "4026532000"}})
	all.learn(idOne, &event.Request{Object: event.ObjectLink, Verb: event.VerbAdd, Interface: event.Interface{Name: "eth0", Kind: "veth", Peer: "veth1a2b3c"}})
	all.learn(idTwo, &event.Result{IPs: []string{"10.1.0.7/16", "fd00::7/64"}})
	for text, want := range map[string][]string{
		"--id=" + idOne:                          {idOne},
		idOne[:12]:                               {idOne},
		idOne[:8]:                                nil,
		"external_ids:container=" + idTwo + ",x": {idTwo},
		"by-hand":                                {"by-hand"},
		"by-hand-2":                              nil,
		"statefuldb-6cqff":                       nil, // chosen by its owner
		"external_ids:pod=web-1":                 nil,
		"stateful-" + hashOf(idOne):              {idOne},
		"web-1-" + hashOf(idTwo):                 {idTwo},
		"web-1-" + hashOf(idOne):                 nil,
		"stateful-568022":                        nil,
		hashOf(idOne):                            nil,
		"/var/run/netns/cni-786877ce":            {idOne},
		"/run/netns/cni-786877ce-2":              nil,
		"/host/run/netns/cni-0bdc":               {idTwo}, // four digits: the whole path
		"cni-0bdc":                               nil,
		"/run/netns/c1":                          {"by-hand"},
		"/run/netns/c10":                         nil,
		"veth1a2b3c":                             {idOne},
		"veth1a2b3c4":                            nil,
		"eth0":                                   nil, // in every pod
		"nw_dst=10.1.0.7,actions=drop":           nil, // any policy may contain it
		idOne + " " + idTwo:                      {idTwo, idOne},
		"":                                       nil,
	} {
		slices.Sort(want)
		harness.EqualSlices(t, all.Mentions(nil, nil, text), want, text, "mentions")
	}
	for address, want := range map[string][]string{"10.1.0.7/32": {idTwo}, "10.1.0.7": {idTwo}, "::ffff:10.1.0.7": {idTwo}, "10.1.0.70": nil, "fd00::7/128": {idTwo}, "default": nil, "": nil} {
		harness.EqualSlices(t, all.Mentions(nil, []string{address}), want, "a request for", address, "mentions")
	}
	if got := all.Mentions([]event.Namespace{{Key: "7", Label: "4026532000"}}, nil); !slices.Equal(got, []string{idOne}) {
		t.Errorf("its namespace mentions %v", got)
	}
	all.End(idOne, false, 10)
	all.Forget(11)
	harness.EqualSlices(t, all.Mentions(nil, nil, idOne, idTwo), []string{idTwo}, "after its call")
}

func TestWhatAPodsOwnerChoosesIsNoEvidence(t *testing.T) {
	ordinary := [][]string{
		{"iptables", "-t", "nat", "-A", "POSTROUTING", "-j", "MASQUERADE"},
		{"ip", "link", "add", "eth0", "up"},
		{"ovs-vsctl", "add-port", "br-int", "tun0"},
		{"ip", "netns", "exec", "default", "true"},
		{"net", "ipv4", "conf", "all", "rp_filter"},
		{"ip", "addr", "add", "10.1.0.1/16", "dev", "br-int"},
		{"conntrack", "-D", "-s", "10.1.0.9"},
		{"tool", "--pod=victim-0", "--namespace=bank"},
		{"tool", "bank/victim-0"},
		{"tool", "victim-" + hashOf(idOne)[:5]},
		{"echo", "decade", "facade"},
	}
	for _, pod := range []string{"nat", "add", "eth0", "br-int", "up", "true", "net", "ipv4", "all", "conf", "rp-filter", "victim-0", "victim", "v", "decade", "10.1.0.1", "link", "default", "victim-" + hashOf(idOne)} {
		for _, netns := range []string{"/proc/4711/ns/net", "/run/netns/net", "/run/netns/nat", "net", "/", "", "/var/run/netns/default", "//proc//1/ns//net"} {
			all := Sandboxes{}
			all.Begin(&event.Call{ContainerID: idTwo, NetNS: netns, IfName: pod, Pod: event.Pod{Namespace: "bank", Name: pod}}, "", false)
			all.learn(idTwo, &event.Request{Object: event.ObjectLink, Verb: event.VerbAdd, Interface: event.Interface{Name: pod, Kind: "veth", Peer: "host-" + pod}})
			all.learn(idTwo, &event.Result{IPs: []string{"0.0.0.0/0", "127.0.0.1/8", "fe80::1/64"}})
			for _, args := range ordinary {
				if got := all.Mentions([]event.Namespace{{}}, []string{"127.0.0.1", "0.0.0.0/0", "fe80::1", "10.1.0.1/16"}, args...); len(got) != 0 {
					t.Errorf("pod %q, namespace at %q: %q mentions it", pod, netns, args)
				}
			}
		}
	}
}

func TestAHashWithoutADigitIsEvidence(t *testing.T) {
	id := fmt.Sprintf("%064x", 63)
	if hash := hashOf(id); strings.ContainsAny(hash, "0123456789") {
		t.Fatal(hash)
	}
	all := Sandboxes{}
	all.Begin(&event.Call{ContainerID: id, Pod: event.Pod{Name: "web-1"}}, "", false)
	harness.EqualSlices(t, all.Mentions(nil, nil, "web-1-"+hashOf(id)), []string{id}, "it mentions")
	if got := all.Mentions(nil, nil, "web-1-facade", "facade", "-"); len(got) != 0 {
		t.Errorf("a word mentions %v", got)
	}
}

func TestAnInterfaceThatItsOwnerNamedIsNoEvidence(t *testing.T) {
	const chosen = "cali0123456789a"
	all := Sandboxes{}
	for _, name := range []string{"eth0", chosen} { // by the shim and its delegated plugin
		all.Begin(&event.Call{ContainerID: idOne, IfName: name}, "", false)
	}
	all.learn(idOne, &event.Request{Object: event.ObjectLink, Verb: event.VerbAdd, Interface: event.Interface{Name: chosen, Kind: "veth", Peer: "veth1a2b3c"}})
	all.learn(idOne, &event.Request{Object: event.ObjectLink, Verb: event.VerbAdd, Interface: event.Interface{Name: "veth4d5e6f", Kind: "veth", Peer: chosen}})
	for name, want := range map[string][]string{chosen: nil, "veth1a2b3c": {idOne}, "veth4d5e6f": {idOne}} {
		harness.EqualSlices(t, all.Mentions(nil, nil, name), want, name, "mentions")
	}
	for i := range maxNames { // beyond the bound
		all.Begin(&event.Call{ContainerID: idTwo, IfName: fmt.Sprintf("net%d", i)}, "", false)
	}
	all.Begin(&event.Call{ContainerID: idTwo, IfName: chosen}, "", false)
	all.learn(idTwo, &event.Request{Object: event.ObjectLink, Verb: event.VerbAdd, Interface: event.Interface{Name: chosen, Kind: "veth", Peer: "veth1a2b3d"}})
	if got := all.Mentions(nil, nil, chosen); len(got) != 0 {
		t.Errorf("%s, one of many, mentions %v", chosen, got)
	}
}

func TestWhatIsSharedNamesNobody(t *testing.T) {
	all := Sandboxes{}
	shared := event.Namespace{Key: "9"}
	for _, id := range []string{idOne, idTwo} {
		all.Begin(&event.Call{ContainerID: id}, "", false)
		all.learn(id, &event.Result{IPs: []string{"10.1.0.7/16"}})
		all.learn(id, &event.Enter{NetNS: shared})
		all.learn(id, &event.Request{Object: event.ObjectLink, Verb: event.VerbAdd, Interface: event.Interface{Name: "cali0123456789a", Kind: "veth"}})
	}
	if got := all.Mentions([]event.Namespace{shared}, []string{"10.1.0.7"}, "cali0123456789a"); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

func TestANamespaceIsKnownByItsKey(t *testing.T) {
	all := Sandboxes{}
	all.Begin(&event.Call{ContainerID: idOne, NetNS: "/run/netns/cni-786877ce"}, "", false)
	all.Begin(&event.Call{ContainerID: idTwo, NetNS: "/proc/77/ns/net"}, "", false)
	all.learn(idTwo, &event.Enter{NetNS: event.Namespace{Key: "7", Label: "4026532000"}})
	all.Opened("/host/run/netns/cni-786877ce", event.Namespace{Key: "8", Label: "4026532000"})
	all.Opened("/run/netns/other", event.Namespace{Key: "10", Label: "4026532001"})
	for key, want := range map[string][]string{"7": {idTwo}, "8": {idOne}, "10": nil, "4026532000": nil} {
		harness.EqualSlices(t, all.Mentions([]event.Namespace{{Key: key, Label: "4026532000"}}, nil), want, key)
	}
}

func TestTheBeginningOfAPodsNameIsNoEvidence(t *testing.T) {
	all := Sandboxes{}
	for id, pod := range map[string]string{idOne: "web-6cf7d5f9b8-x7x2p", idTwo: "web-6cf7d5f9b8-q4zzs"} {
		all.Begin(&event.Call{ContainerID: id, Pod: event.Pod{Name: pod}}, "", false)
	}
	made := func(id string, names ...string) {
		for _, name := range names {
			all.learn(id, &event.Request{Object: event.ObjectLink, Verb: event.VerbAdd, Interface: event.Interface{Name: name, Kind: "veth"}})
		}
	}
	made(idOne, "web-6cf7d5", "vethweb-6cf7d5f", "ab6cf7d5f9b8", "web-6cf7-1a2b3c")
	for name, want := range map[string][]string{
		"web-6cf7": nil, "web-6cf7d5": nil, "vethweb-6cf7d5f": nil, "ab6cf7d5f9b8": nil,
		"web-6cf7-1a2b3c": {idOne}, "web-6cf7-" + hashOf(idOne): {idOne}, "web-6cf7-" + hashOf(idTwo): {idTwo},
	} {
		harness.EqualSlices(t, all.Mentions(nil, nil, name), want, name, "mentions")
	}
	made(idTwo, "web-6cf7-1a2b3c")
	if got := all.Mentions(nil, nil, "web-6cf7-1a2b3c"); len(got) != 0 {
		t.Errorf("what two pods have mentions %v", got)
	}
}

func TestAForgerTakesHalfOfTheSandboxes(t *testing.T) {
	all := Sandboxes{}
	for i := range 2 * remember {
		all.Begin(&event.Call{ContainerID: fmt.Sprintf("%064x", i)}, "", i < remember)
	}
	runtimes := 0
	for _, s := range all {
		if !s.hearsay {
			runtimes++
		}
	}
	if runtimes != remember/2 || len(all) != remember {
		t.Errorf("%d of %d are the runtime's", runtimes, len(all))
	}
}

// Commands of antrea's agent on Windows (pkg/agent/util/powershell/powershell_windows.go). Of its adapters' names
// only the hash of the container's id is evidence.
func TestWhatNamesASandboxOnWindows(t *testing.T) {
	const namespaceOne, namespaceTwo = "786877ce-0bdc-4ff7-a58a-1d2f3a4b5c6d", "786877CE-0BDC-4FF7-A58A-0000000000FF"
	all := Sandboxes{}
	all.Begin(&event.Call{ContainerID: idOne, NetNS: namespaceOne, IfName: "eth0", Pod: event.Pod{Name: "db-6cqff"}}, "", false)
	all.Begin(&event.Call{ContainerID: idTwo, NetNS: namespaceTwo, IfName: "eth0", Pod: event.Pod{Name: "statefuldb-7"}}, "", false)
	all.Begin(&event.Call{ContainerID: "c3", NetNS: "786877ce-net", IfName: "eth0", Pod: event.Pod{Name: "db-" + hashOf(idOne)}}, "", false)
	script := func(name string) string {
		return `$ErrorActionPreference="Stop";try {Get-NetAdapter -InterfaceAlias "` + name + `"} catch {Write-Host $_;os.Exit(1)}`
	}
	for text, want := range map[string][]string{
		script("vEthernet (db-6cqff-" + hashOf(idOne) + ")"):                                          {idOne},
		script("vEthernet (stateful-" + hashOf(idTwo) + ")"):                                          {idTwo},
		"Set-NetIPInterface -InterfaceAlias 'vEthernet (db-6cqff-" + hashOf(idOne) + ")' -NlMtu 1450": {idOne},
		script("vEthernet (db-6cqff-568022)"):                                                         {idOne},
		script("vEthernet (db-6cqff-568023)"):                                                         nil,
		script("vEthernet (db-6cqff-" + hashOf(idTwo) + ")"):                                          nil,
		script("vEthernet (db-6cqff)"):                                                                nil,
		script("vEthernet (Ethernet)"):                                                                nil,
		"Remove-HnsEndpoint " + idOne + "_antrea-hnsnetwork":                                          {idOne},
		"Get-HnsNamespace -Id " + strings.ToUpper(namespaceOne):                                       {idOne},
		"Get-HnsNamespace -Id {" + strings.ToLower(namespaceTwo) + "}":                                {idTwo},
		"Get-HnsNamespace -Id " + namespaceOne + "0":                                                  nil,
		"786877ce-net": nil,
	} {
		slices.Sort(want)
		harness.EqualSlices(t, all.Mentions(nil, nil, text), want, text, "mentions")
	}
}

// In a burst, an agent also looks at interfaces of pods whose call is over.
func TestTheInterfaceOfAnotherPod(t *testing.T) {
	all := Sandboxes{}
	all.Begin(&event.Call{ContainerID: idOne, IfName: "eth0", Pod: event.Pod{Name: "thirty21"}}, "other", false)
	all.Begin(&event.Call{ContainerID: idTwo, IfName: "eth0"}, "", false) // its pod is unknown
	r := &event.Request{Interface: event.Interface{Name: "thirty15-aa8f9e"}}
	all.Attribute(Doer{Agent: true}, r, "")
	harness.EqualSlices(t, r.Mentions, nil, "another plugin's agent")
	all.Begin(&event.Call{ContainerID: idOne, IfName: "eth0", Pod: event.Pod{Name: "thirty21"}}, "antrea", false)
	for name, want := range map[string][]string{
		"thirty21-" + hashOf(idOne): {idOne}, "thirty15-aa8f9e": {another}, "by-hand-" + hashOf(idTwo): nil,
		"antrea-gw0": nil, "eth0": nil, "veth1a2b3c": nil, "vxlan-facade": nil,
	} {
		r := &event.Request{Interface: event.Interface{Name: name}}
		all.Attribute(Doer{Agent: true}, r, "")
		harness.EqualSlices(t, r.Mentions, want, name)
		byIndex := &event.Request{Interface: event.Interface{Index: 7}}
		all.Attribute(Doer{Agent: true}, byIndex, name)
		harness.EqualSlices(t, byIndex.Mentions, want, name, "by index")
	}
}
