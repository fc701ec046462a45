package doctor

import (
	"context"
	"errors"
	"io/fs"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/leak"
	"github.com/cniscope/cniscope/test/harness"
)

// whole is a healthy node.
func whole() *fact.Facts {
	network := event.Network{Name: "pods", CNIVersion: "1.0.0", File: "10-pods.conflist", Plugins: []event.Plugin{{Type: "bridge", IPAM: "host-local"}}}
	f := &fact.Facts{
		Now:     time.Unix(1_800_000_000, 0),
		Options: fact.Options{Endpoint: "http://127.0.0.1:4317", NRISocket: "/run/nri/nri.sock", Hung: 20 * time.Second},
	}
	f.Runtime.Value = fact.Runtime{Name: "containerd", Version: "v2.4.2", Plugins: []fact.RuntimePlugin{{Type: "io.containerd.cri.v1", ID: "runtime"}, {Type: "io.containerd.snapshotter.v1", ID: "zfs", Err: "skip plugin"}}}
	f.CRI.Value = fact.CRI{
		Ready: true, Network: true, Told: true, ConfDir: "/etc/cni/net.d", BinDirs: []string{"/opt/cni/bin"}, MaxConf: 1,
		Loaded: []fact.Loaded{{Network: event.Network{Name: network.Name, CNIVersion: network.CNIVersion, Plugins: network.Plugins}, Subnets: []netip.Prefix{netip.MustParsePrefix("10.244.0.0/24")}}},
	}
	f.Folder.Value = fact.Folder{Dir: "/etc/cni/net.d", Networks: []event.Network{network}}
	f.Binaries.Value = []fact.Binary{{Name: "bridge", Network: "pods"}}
	f.Agents.Value = []fact.Agent{{Asked: fact.Asked{Network: "pods", Plugin: "bridge", Kind: fact.AsksUnix, Address: "/run/agent.sock", Seen: true}, Reach: fact.Answers}}
	f.Kubelet.Value = fact.Health{Status: 200, Body: "ok", Running: true}
	f.DNS.Value = fact.DNS{Server: "10.96.0.10"}
	f.Scope.Value = fact.Scope{Node: control.Node{NRI: "registered"}}
	f.NRI.Value = fact.NRI{Socket: true, Listening: true, Sure: true}
	f.Kernel.Value = fact.Kernel{Release: "6.1", Features: []fact.Feature{{Name: "x", There: true}}}
	f.Clock.Value = fact.Clock{Synchronised: true}
	return f
}

func misplaced(f *fact.Facts) {
	f.CRI.Value.Network, f.CRI.Value.Loaded = false, nil
	f.Folder.Value.Networks, f.Folder.Value.Elsewhere, f.Folder.Value.Other = nil, []string{"/srv/cni/10-a.conflist"}, []string{"10-b.bak"}
}

// change is made to a healthy node.
type change struct {
	check, name string
	change      func(*fact.Facts)
	level       Level    // none if the check finds nothing
	says        []string // behind "not: ", a text that is missing
}

func judged(t *testing.T, changes ...change) {
	t.Helper()
	for _, c := range changes {
		t.Run(c.check+": "+c.name, func(t *testing.T) {
			f := whole()
			c.change(f)
			r := Judge(f)
			i := slices.IndexFunc(r.Findings, func(x Finding) bool { return x.Check == c.check })
			if (i < 0) != (c.level == "") {
				t.Fatalf("want %q: %+v", c.level, r)
			}
			if i < 0 {
				return
			}
			x := r.Findings[i]
			if x.Level != c.level || len(x.Remedy) == 0 || len(x.Evidence) == 0 {
				t.Errorf("want a %s with evidence and remedy: %+v", c.level, x)
			}
			for _, says := range c.says {
				not, without := strings.CutPrefix(says, "not: ")
				if strings.Contains(all(x), not) == without {
					t.Errorf("want %q:\n%s", says, all(x))
				}
			}
			harness.Equal(t, r.ExitCode() == ExitFindings, c.level != Note, "it ends with", r.ExitCode())
		})
	}
}

func all(x Finding) string {
	return strings.Join(slices.Concat([]string{x.Summary}, x.Evidence, x.Remedy), "\n")
}

func TestAHealthyNodeIsSilent(t *testing.T) {
	r := Judge(whole())
	if len(r.Findings) > 0 || r.ExitCode() != ExitHealthy || r.Count(OK) != len(checks()) {
		t.Errorf("%+v", r)
	}
}

// They look like trouble.
func TestOtherHealthyNodes(t *testing.T) {
	chains := []fact.Chain{{Backend: "nftables", Family: "ip", Table: "nat", Name: "KUBE-SERVICES"}, {Backend: "nftables", Family: "ip", Table: "filter", Name: "KUBE-ROUTER-INPUT"}}
	tests := map[string]func(*fact.Facts){
		"k3s, which has kube-proxy, Flannel and network policies in it": func(f *fact.Facts) {
			f.Processes.Value = []fact.Process{{Name: "k3s", HostNet: true}}
			f.Chains.Value = chains
			f.Network.Value.Links = []fact.Link{{Name: "flannel.1", Type: "vxlan", Addresses: []netip.Prefix{netip.MustParsePrefix("10.244.0.0/32")}}}
		},
		"Cilium chained behind another CNI": func(f *fact.Facts) {
			f.CRI.Value.Loaded[0].Plugins = append(f.CRI.Value.Loaded[0].Plugins, event.Plugin{Type: "cilium-cni"})
			f.Folder.Value.Networks[0].Plugins = f.CRI.Value.Loaded[0].Plugins
			f.Network.Value.Links = []fact.Link{{Name: "cilium_host"}}
		},
		"Calico for policy alone": func(f *fact.Facts) {
			f.Containers.Value = []fact.Container{{Name: "calico-node", State: "running", SandboxReady: true}}
			f.Network.Value.Links = []fact.Link{{Name: "cali123"}}
		},
		"the node's bridge and the ends of its pods": func(f *fact.Facts) {
			f.CRI.Value.Loaded[0].Bridges = []string{"br-pods"}
			f.Network.Value.Links = []fact.Link{
				{Name: "br-pods", Type: "bridge", Addresses: []netip.Prefix{netip.MustParsePrefix("10.244.0.1/24")}},
				{Name: "veth1", Type: "veth", Addresses: []netip.Prefix{netip.MustParsePrefix("10.244.0.1/32")}},
				{Name: "eth0", Type: "veth", Addresses: []netip.Prefix{netip.MustParsePrefix("172.18.0.2/16")}},
			}
			f.Network.Value.Routes = []fact.Route{{Prefix: netip.MustParsePrefix("10.244.0.0/24"), Link: "eth0"}}
		},
		"a container that was just made": func(f *fact.Facts) {
			f.Containers.Value = []fact.Container{{Name: "x", State: "created", Created: f.Now.Add(-time.Second), SandboxReady: true, Mounts: []string{"/opt/cni/bin"}}}
		},
		"a pod that is over": func(f *fact.Facts) {
			f.Containers.Value = []fact.Container{{Name: "kube-proxy", Proxy: true, State: "exited", ExitCode: 137}}
		},
		"a call that is young": func(f *fact.Facts) {
			f.Scope.Value.Calls = []control.Call{{Command: "ADD", Plugin: "bridge", Age: time.Second}}
		},
		"what a sandbox holds whose call is under way": func(f *fact.Facts) {
			f.Held.Value = leak.Look{Time: f.Now, Leases: []leak.Lease{{Network: "pods", ContainerID: "a", Since: f.Now.Add(-time.Hour)}}}
			f.Scope.Value.Calls = []control.Call{{Command: "ADD", ContainerID: "a", Age: time.Second}}
		},
		"a damaged result, which containerd 2 removes": func(f *fact.Facts) {
			f.Held.Value = leak.Look{Time: f.Now, Alive: map[string]bool{"a": true}, Damaged: []leak.Attachment{{ContainerID: "a", File: "/a"}}}
		},
		"a stopped sandbox, whose DEL is due": func(f *fact.Facts) {
			f.Held.Value = leak.Look{Time: f.Now, Alive: map[string]bool{"a": true}, Stopped: []leak.Attachment{{Network: "pods", ContainerID: "a"}}}
		},
		"a lock that nobody waits for": func(f *fact.Facts) { f.Locks.Value = []fact.Lock{{File: "/run/xtables.lock"}} },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			f := whole()
			change(f)
			if r := Judge(f); len(r.Findings) > 0 {
				t.Errorf("%+v", r.Findings)
			}
		})
	}
}

// One change to a healthy node, beyond what the rig can make.
func TestOneChangeOneFinding(t *testing.T) {
	judged(t, []change{
		{"dns", "CoreDNS has no pod", func(f *fact.Facts) {
			f.DNS.Value = fact.DNS{Server: "10.96.0.10", Name: "kubernetes.default.svc.cluster.local", Err: "i/o timeout"}
		}, Warning, []string{"10.96.0.10 does not resolve kubernetes.default.svc.cluster.local", "the DNS server does not answer: i/o timeout", "get pods -l k8s-app=kube-dns"}},
		{"dns", "CoreDNS answers with an error", func(f *fact.Facts) {
			f.DNS.Value = fact.DNS{Server: "10.96.0.10", Name: "kubernetes.default.svc.cluster.local", Said: "no such host"}
		}, Warning, []string{"the DNS server answers with an error: no such host", "read the server's log", "clusterDomain"}},
		{"clock", "nobody sets it", func(f *fact.Facts) { f.Clock.Value = fact.Clock{MaxError: 16 * time.Second} }, Warning, []string{"STA_UNSYNC", "16s", "chrony"}},
		{"kernel", "no BTF", func(f *fact.Facts) { f.Kernel.Value.BTF = "no vmlinux" }, Warning, []string{"CONFIG_DEBUG_INFO_BTF", "no vmlinux"}},
		{"kernel", "a tracepoint that is needed", func(f *fact.Facts) {
			f.Kernel.Value.Features = []fact.Feature{{Name: "the tracepoint sched_process_exec", For: "plugins are not seen", Needed: true}}
		}, Warning, []string{"sched_process_exec", "by the process connector"}},
		{"kernel", "no BTF, in a container of its own", func(f *fact.Facts) {
			f.Kernel.Value.BTF, f.Kernel.Value.Connector = "no vmlinux", "it needs CAP_NET_ADMIN"
		}, Problem, []string{"cniscope traces nothing", "it needs CAP_NET_ADMIN", "hostPID"}},
		{"kernel", "a cniscope that observes by other means", func(f *fact.Facts) {
			f.Scope.Value.Node.Probe = "attached by the process connector: plugins and commands"
		}, Warning, []string{"attached by the process connector", "feature unavailable"}},
		{"kernel", "a tracepoint to do without", func(f *fact.Facts) {
			f.Kernel.Value.Features = []fact.Feature{{Name: "the tracepoint contention_begin"}}
		}, Note, []string{"contention_begin"}},
		{"kernel", "programs that were not run", func(f *fact.Facts) {
			f.Scope.Value.Node.Missed = 17
		}, Note, []string{"17 times", "preempted or interrupted", "cniscope_bpf_program_missed_total"}},
		{"kernel", "process 1 unreadable", func(f *fact.Facts) { f.Kernel.Value.First = "readlink /proc/1/ns/net: permission denied" }, Note, []string{"plugin as untrusted", "permission denied", "CAP_SYS_PTRACE"}},
		{"kernel", "lockdown", func(f *fact.Facts) { f.Kernel.Value.Lockdown = "confidentiality" }, Warning, []string{"lockdown=integrity"}},
		{"runtime", "a plugin that did not start", func(f *fact.Facts) {
			f.Runtime.Value.Plugins[0].Err = "invalid plugin config: x"
		}, Problem, []string{"io.containerd.cri.v1.runtime did not start", "invalid plugin config"}},
		{"runtime", "no inotify instance", func(f *fact.Facts) {
			f.Runtime.Value.Plugins[0].Err = "failed to create CNI conf monitor for default: failed to create fsnotify watcher: too many open files"
		}, Problem, []string{"io.containerd.cri.v1.runtime did not start", "sysctl -w fs.inotify.max_user_instances=8192", "restart"}},
		{"runtime", "no file descriptor", func(f *fact.Facts) { f.Runtime.Value.Plugins[0].Err = "open /x: too many open files" }, Problem, []string{"raise LimitNOFILE"}},
		{"runtime", "CRI is switched off", func(f *fact.Facts) {
			f.CRI.Err, f.NRI.Value.Listening = errors.New("code = Unimplemented"), false
		}, Problem, []string{"is switched off", "disabled_plugins"}},
		{"runtime", "CRI is of another version", func(f *fact.Facts) {
			f.CRI.Err = errors.New("code = Unimplemented")
			f.Runtime.Value.Plugins = append(f.Runtime.Value.Plugins, fact.RuntimePlugin{Type: "io.containerd.grpc.v1", ID: "cri"})
		}, Problem, []string{"its CRI does not"}},
		{"runtime", "CRI hangs", func(f *fact.Facts) { f.CRI.Err = errors.New("code = DeadlineExceeded") }, Problem, []string{"its CRI does not", "cniscope ps"}},
		{"runtime", "not ready", func(f *fact.Facts) { f.CRI.Value.Ready, f.CRI.Value.ReadyReason = false, "why" }, Problem, []string{"RuntimeReady=false: why"}},
		{"network-ready", "STATUS says no", func(f *fact.Facts) {
			f.CRI.Value.Network, f.CRI.Value.NetworkReason = false, "NetworkPluginNotReady: plugin status: agent down"
		}, Problem, []string{"the plugins' STATUS reports that the network is not ready", "agent down"}},
		{"network-ready", "a version that no plugin has", func(f *fact.Facts) {
			f.CRI.Value.Network, f.CRI.Value.NetworkReason = false, "NetworkPluginNotReady: plugin version does not allow STATUS"
			f.Folder.Value.Networks[0].CNIVersion = "2.0.0"
		}, Problem, []string{"not ready: containerd does not support the cniVersion of network \"pods\"", "see cni-version"}},
		{"network-ready", "nothing loaded", func(f *fact.Facts) {
			f.CRI.Value.Network, f.CRI.Value.Loaded = false, nil
		}, Problem, []string{"has not loaded 10-pods.conflist", "see cni-loaded"}},
		{"network-ready", "a writer that fails, and a configuration in another folder", func(f *fact.Facts) {
			misplaced(f)
			f.Containers.Value = []fact.Container{{Namespace: "kube-system", Pod: "calico-node-x", Name: "install-cni", State: "exited", ExitCode: 1, Restarts: 4, SandboxReady: true, Mounts: []string{"/etc/cni/net.d"}, LastLine: "no token"}}
		}, Problem, []string{"written into /etc/cni/net.d by calico-node-x (container install-cni: exited); /srv/cni contains a CNI configuration", "install-cni (exited) of pod kube-system/calico-node-x: no token", "see network-pods\nif this"}},
		{"network-ready", "a writer that runs, and a configuration in another folder", func(f *fact.Facts) {
			misplaced(f)
			f.Containers.Value = []fact.Container{
				{Namespace: "kube-system", Pod: "cilium-x", Name: "cilium-agent", State: "running", SandboxReady: true, Owner: "Cilium"},
				{Namespace: "kube-system", Pod: "kube-proxy-x", Name: "kube-proxy", State: "exited", ExitCode: 1, SandboxReady: true, Proxy: true},
			}
		}, Problem, []string{"reads /etc/cni/net.d, but there is a CNI configuration in /srv/cni", "and restart the runtime\nread its log: kubectl -n kube-system logs cilium-x"}},
		{"cni-folder", "ignored files, and a configuration in another folder", misplaced, Problem, []string{"does not read: /srv/cni/10-a.conflist", "\"10-b.bak\"", "otherwise install"}},
		{"cni-version", "1.1.0 for containerd 1.7", func(f *fact.Facts) {
			f.Folder.Value.Networks[0].CNIVersion, f.Runtime.Value.Version = "1.1.0", "v1.7.35"
		}, Problem, []string{"cniVersion 1.1.0", "0.1.0, 0.2.0, 0.3.0, 0.3.1, 0.4.0, 1.0.0"}},
		{"cni-binaries", "an uninstalled CNI, and a pod that waits for it", func(f *fact.Facts) {
			f.Binaries.Value = []fact.Binary{{Name: "istio-cni", Network: "pods", Wrong: &event.Program{Name: "istio-cni", Fault: event.FaultAbsent}}}
			f.Held.Value.Stopped = []leak.Attachment{{Network: "pods", ContainerID: "a"}, {Network: "other", ContainerID: "b"}}
		}, Problem, []string{"sandbox a (pod unknown) cannot be removed without it", "if istio-cni was uninstalled"}},
		{"cni-folder", "a later file cannot be read, and only one is used", func(f *fact.Facts) { f.Folder.Value.Problems = []string{"20-x.conf: line 1"} }, Note, []string{"20-x.conf"}},
		{"cni-folder", "a later file cannot be read, and all are used", func(f *fact.Facts) {
			f.Folder.Value.Problems, f.CRI.Value.MaxConf = []string{"20-x.conf: line 1"}, 2
		}, Problem, []string{"20-x.conf"}},
		{"cni-loaded", "the file's text is another", func(f *fact.Facts) {
			f.Folder.Value.Digests = map[string]string{"10-pods.conflist": "a"}
			f.CRI.Value.Loaded[0].Digest = "b"
		}, Warning, []string{"touch /etc/cni/net.d/.reload"}},
		{"network-pods", "one that starts again and again", func(f *fact.Facts) {
			f.Containers.Value = []fact.Container{{Name: "agent", State: "running", Restarts: 5, Started: f.Now.Add(-time.Minute), SandboxReady: true, Mounts: []string{"/opt/cni/bin"}}}
		}, Problem, []string{"has restarted 5 times, the last time 1m0s ago"}},
		{"calls", "one that waits for a lock", func(f *fact.Facts) {
			f.Scope.Value.Calls = []control.Call{{Command: "ADD", Plugin: "bridge", Age: time.Minute, PID: 7, Runs: "host-local"}}
			f.Locks.Value = []fact.Lock{{File: "/var/lib/cni/networks/pods/lock", Holder: "process 6 (host-local)", WaiterPIDs: []int{7}, Waiters: []string{"process 7 (host-local)"}}}
		}, Problem, []string{"process 7 waits for /var/lib/cni/networks/pods/lock, which process 6 (host-local) holds"}},
		{"overlap", "a tunnel leads into the pods' network", func(f *fact.Facts) {
			f.Network.Value = fact.Network{Links: []fact.Link{{Name: "tun0", Type: "tuntap"}}, Routes: []fact.Route{{Prefix: netip.MustParsePrefix("10.244.0.0/16"), Link: "tun0"}}}
		}, Warning, []string{"route to 10.244.0.0/16 by tun0"}},
		{"overlap", "the controller manager's subnet", func(f *fact.Facts) {
			f.CRI.Value.Loaded[0].Subnets = nil
			f.Processes.Value = []fact.Process{{Name: "kube-controller-manager", Settings: []fact.Setting{{Key: "cluster-cidr", Value: "192.168.0.0/16,fd00::/48", From: "command line"}}}}
			f.Network.Value.Links = []fact.Link{{Name: "eth0", Addresses: []netip.Prefix{netip.MustParsePrefix("192.168.1.5/24")}}}
		}, Warning, []string{"192.168.0.0/16", "interface eth0 has 192.168.1.5/24", "kube-controller-manager's command line"}},
		{"leaked-networks", "an ADD without a DEL", func(f *fact.Facts) {
			f.Held.Value = leak.Look{Time: f.Now, Alive: map[string]bool{"b": true}, Complete: true, Cached: []leak.Attachment{
				{ContainerID: "a", Network: "pods", IfName: "eth0", Since: f.Now.Add(-3 * time.Hour), Addresses: []string{"10.244.0.5/24"}, File: "/var/lib/cni/results/pods-a-eth0", Pod: event.Pod{Namespace: "shop", Name: "web"}},
				{ContainerID: "b", Network: "pods", IfName: "eth0", Since: f.Now.Add(-3 * time.Hour), File: "/var/lib/cni/results/pods-b-eth0"},
			}}
			f.Scope.Value.Recent.Held = []leak.Attachment{{ContainerID: "a", IfName: "eth0", Tried: 2, Says: "plugin bridge failed"}}
		}, Warning, []string{"1 network attachment without a sandbox", "eth0 of network \"pods\", pod shop/web, sandbox a, since", "(3h0m0s), 10.244.0.5/24", "DEL failed 2 times, the last time: plugin bridge failed", "for f in /var/lib/cni/results/pods-a-eth0; do jq"}},
		{"leaked-networks", "a cached result without content", func(f *fact.Facts) {
			f.Runtime.Value.Version = "v1.7.35"
			f.Held.Value = leak.Look{Time: f.Now, Alive: map[string]bool{"a": true}, Damaged: []leak.Attachment{
				{ContainerID: "a", Since: f.Now.Add(-time.Hour), File: "/var/lib/cni/results/pods-a-eth0"},
			}}
		}, Problem, []string{"of 1 network attachment is empty or cut off", "of sandbox a, written 1h0m0s ago", "rm /var/lib/cni/results/pods-a-eth0"}},
		{"leaked-networks", "an ADD that failed, of which libcni remembers nothing", func(f *fact.Facts) {
			f.Held.Value = leak.Look{Time: f.Now, Complete: true}
			f.Scope.Value.Recent.Held = []leak.Attachment{{ContainerID: "a", IfName: "eth0", Since: f.Now.Add(-time.Hour), Failed: true}}
		}, Warning, []string{"a network of unknown name, pod unknown, sandbox a", "the ADD failed and was not undone", "cniscope saw the ADD", "free the addresses that leaked-leases names"}},
		{"leaked-leases", "older than the node's restart", func(f *fact.Facts) {
			f.Held.Value = leak.Look{Time: f.Now, Boot: f.Now.Add(-time.Hour), Alive: map[string]bool{"b": true}, Total: map[string]int{"pods": 254}, Leases: []leak.Lease{
				{Network: "pods", Address: "10.244.0.5", ContainerID: "a", Since: f.Now.Add(-72 * time.Hour), File: "/var/lib/cni/networks/pods/10.244.0.5"},
				{Network: "pods", Address: "10.244.0.6", ContainerID: "b", Since: f.Now.Add(-72 * time.Hour), File: "/var/lib/cni/networks/pods/10.244.0.6"},
			}}
		}, Warning, []string{"removed sandboxes have held 1 of 254 addresses of network \"pods\" (host-local) for up to 3 days", "10.244.0.5, leased to sandbox a since", "1 lease from before the node's restart", "rm /var/lib/cni/networks/pods/10.244.0.5 #"}},
		{"runtime", "several", func(f *fact.Facts) { f.Runtime.Value.Others = []string{"/run/crio/crio.sock"} }, Note, []string{"other sockets: /run/crio/crio.sock"}},
		{"cni-folder", "no JSON", func(f *fact.Facts) {
			f.Folder.Value.Blocking, f.Folder.Value.NotJSON = "00-bad.conflist", true
		}, Problem, []string{"00-bad.conflist, is not valid JSON, so containerd loads no network"}},
		{"otlp", "no answer", func(f *fact.Facts) { f.Sent.Err = context.DeadlineExceeded }, Warning, []string{"nothing answers at"}},
		{"otlp", "a refused span", func(f *fact.Facts) { f.Sent.Err = status.Error(codes.PermissionDenied, "no") }, Warning, []string{"rejects spans", "headers"}},
		// Before: a port such as 34047 counted as the HTTP status 404.
		{"otlp", "a refused connection", func(f *fact.Facts) {
			f.Sent.Err = status.Error(codes.Unavailable, "dial tcp 127.0.0.1:34047: connect: connection refused")
		}, Warning, []string{"nothing answers at", "start the Collector"}},
		{"otlp", "no such path", func(f *fact.Facts) {
			f.Sent.Err = status.Error(codes.Unimplemented, "unexpected HTTP status code received from server: 404 (Not Found)")
		}, Warning, []string{"HOST:4318/v1/traces"}},
		{"otlp", "an endpoint of HTTP", func(f *fact.Facts) {
			f.Sent.Err = status.Error(codes.Unavailable, "error reading server preface: http2: frame too large, HTTP/1.1 header")
		}, Warning, []string{"HOST:4318/v1/traces"}},
		{"service-rules", "IPVS", func(f *fact.Facts) { f.Network.Value.Links = []fact.Link{{Name: "kube-ipvs0", Type: "dummy"}} }, Warning, []string{"interface kube-ipvs0", "ipvsadm --clear"}},
	}...)
}

// A missing fact is not health.
func TestWhatIsNotKnownIsNotCalledHealthy(t *testing.T) {
	denied := fs.ErrPermission
	f := whole()
	f.Runtime.Err, f.CRI.Err, f.Containers.Err, f.Folder.Err, f.Binaries.Err = denied, denied, denied, denied, denied
	f.Processes.Err, f.Chains.Err, f.LB.Err, f.Network.Err, f.Locks.Err = denied, denied, denied, denied, denied
	f.Held.Err = denied
	f.Scope.Err, f.NRI.Err, f.Kernel.Err, f.Clock.Err, f.Kubelet.Err, f.DNS.Err = denied, denied, denied, denied, denied, denied
	r := Judge(f)
	if len(r.Findings) > 0 || r.ExitCode() != ExitUnchecked {
		t.Errorf("%+v", r.Findings)
	}
	for _, c := range r.Checks {
		if c.State == OK && c.Name != "otlp" {
			t.Errorf("%s is called healthy", c.Name)
		}
		if c.State == Unchecked && c.Reason != fact.ErrSilent.Error() && !strings.Contains(c.Reason, "run doctor as root") {
			t.Errorf("%s does not say what to do: %s", c.Name, c.Reason)
		}
	}
}

// cni-folder has the error of loading.
func TestTheErrorOfLoadingIsSaidOnce(t *testing.T) {
	f := whole()
	f.CRI.Value.Network, f.CRI.Value.LastLoad = false, "cni config load failed"
	f.Folder.Value.Blocking, f.Folder.Value.NotJSON = "00-bad.conflist", true
	n := 0
	for _, finding := range Judge(f).Findings {
		n += strings.Count(all(finding), "cni config load failed")
	}
	harness.Equal(t, n, 1, "times")
}

// Both obstacles are reported.
func TestWhoMayNotObserveIsToldOfBothMeans(t *testing.T) {
	f := whole()
	f.Scope.Err = control.ErrNotRunning
	f.Kernel.Value.Lacking, f.Kernel.Value.Connector = []string{"CAP_BPF", "CAP_PERFMON"}, "it needs the node's own PID namespace"
	found, err := kernelIsEnough(f)
	if len(found) > 0 || err == nil || !strings.Contains(err.Error(), "CAP_PERFMON") || !strings.Contains(err.Error(), "the node's own PID namespace") {
		t.Errorf("%v, %v", found, err)
	}
}

func TestALivelyKubeProxyNeedsBothSidesToBeAConflict(t *testing.T) {
	proxy := []fact.Process{{Name: "kube-proxy", HostNet: true}}
	f := whole()
	f.Processes.Value, f.LB.Err = proxy, fs.ErrPermission
	if _, err := oneServiceProxy(f); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a replacement that cannot be seen: %v", err)
	}
	f = whole()
	f.LB.Err = fs.ErrPermission
	if found, err := oneServiceProxy(f); err != nil || found != nil {
		t.Errorf("without a kube-proxy nothing is to be seen: %v %v", found, err)
	}
	f.LB = fact.Of[fact.LB]{Value: fact.LB{Socket: []fact.Attached{{Program: "cil_sock4_conne", To: "/"}}}}
	f.Processes.Value = proxy
	if found, _ := oneServiceProxy(f); found != nil {
		t.Errorf("a service map that is empty serves nobody: %v", found)
	}
	f.LB.Value.NodePorts = 3
	found, err := oneServiceProxy(f)
	if err != nil || len(found) != 1 {
		t.Fatalf("both are live: %v %v", found, err)
	}
	harness.Says(t, all(found[0]), "iptables-save", "ip6tables-save", "nft delete table ip kube-proxy", "nft delete table ip6 kube-proxy", "ipvsadm")
	harness.Says(t, found[0].Remedy[0], "keep kube-proxy")
	if strings.Contains(all(found[0])+"\n", ":\n") {
		t.Errorf("a heading: %q", found[0].Remedy)
	}
}

// Cilium documents these options for local redirect policies.
func TestSocketLoadBalancingBesideKubeProxyIsNoConflict(t *testing.T) {
	f := whole()
	f.Processes.Value = []fact.Process{
		{Name: "kube-proxy", HostNet: true},
		{Name: "cilium-agent", HostNet: true, Settings: []fact.Setting{{Key: "kube-proxy-replacement", Value: "false", From: "command line"}}},
	}
	f.LB.Value = fact.LB{Socket: []fact.Attached{{Program: "cil_sock4_conne", To: "/"}}, Services: 4, Maps: []string{"map cilium_lb4_serv"}}
	r := Judge(f)
	if len(r.Findings) != 1 || r.Findings[0].Level != Note || r.ExitCode() != ExitHealthy {
		t.Errorf("want a note: %+v", r.Findings)
	}
	f.Processes.Value[1].Settings[0].Value = "true"
	if r = Judge(f); len(r.Findings) != 1 || r.Findings[0].Level != Warning {
		t.Errorf("want a warning: %+v", r.Findings)
	}
}

// Findings and remedies name the node's own runtime.
func TestNothingNamesARuntimeThatIsNotThere(t *testing.T) {
	broken := map[string]func(*fact.Facts){
		"away":         func(f *fact.Facts) { f.Runtime.Err, f.CRI.Err = errors.New("connection refused"), errors.New("away") },
		"CRI hangs":    func(f *fact.Facts) { f.CRI.Err = errors.New("code = DeadlineExceeded") },
		"not ready":    func(f *fact.Facts) { f.CRI.Value.Ready = false },
		"no folder":    func(f *fact.Facts) { f.Folder.Value = fact.Folder{Dir: "/etc/cni/net.d", Missing: true} },
		"empty folder": func(f *fact.Facts) { f.Folder.Value.Networks, f.Folder.Value.Other = nil, []string{"x.bak"} },
		"broken file":  func(f *fact.Facts) { f.Folder.Value.Problems = []string{"20-x.conf: line 1"} },
		"version":      func(f *fact.Facts) { f.Folder.Value.Networks[0].CNIVersion = "9.9.9" },
		"several": func(f *fact.Facts) {
			f.Folder.Value.Networks = append(f.Folder.Value.Networks, event.Network{Name: "other", File: "99"})
		},
		"network": func(f *fact.Facts) {
			f.CRI.Value.Network, f.CRI.Value.NetworkReason = false, "No CNI configuration file"
		},
		"no plugin": func(f *fact.Facts) {
			f.Binaries.Value[0].Wrong = &event.Program{Name: "bridge", Fault: event.FaultAbsent, Has: "/opt/cni/bin"}
		},
		"no NRI":         func(f *fact.Facts) { f.NRI.Value = fact.NRI{Sure: true} },
		"nobody's NRI":   func(f *fact.Facts) { f.NRI.Value.Listening = false },
		"not registered": func(f *fact.Facts) { f.Scope.Value.Node.NRI = "degraded" },
		"agent away":     func(f *fact.Facts) { f.Agents.Value[0].Reach = fact.Refused },
	}
	for _, name := range []string{"cri-o", "docker", "other"} {
		for what, breaks := range broken {
			f := whole()
			f.Runtime.Value = fact.Runtime{Name: name, Version: "1.34.0", Unit: "crio"}
			f.CRI.Value.Told = false
			breaks(f)
			r := Judge(f)
			if without := name == "docker" && (strings.Contains(what, "NRI") || what == "not registered"); (len(r.Findings) == 0) != without {
				t.Errorf("%s, %s: found %+v", name, what, r.Findings)
			}
			for _, x := range r.Findings {
				if strings.Contains(all(x), "containerd") {
					t.Errorf("%s, %s: %s: %q", name, what, x.Check, all(x))
				}
			}
		}
	}
}

// CRI-O may name its network.
func TestTheDefaultNetworkIsUsed(t *testing.T) {
	f := whole()
	f.CRI.Value.Told, f.CRI.Value.Default = false, "second"
	f.Folder.Value.Networks = append(f.Folder.Value.Networks, event.Network{Name: "second", CNIVersion: "1.0.0", File: "20"})
	if used := fact.Winners(f); len(used) != 1 || used[0].Name != "second" {
		t.Errorf("%+v", used)
	}
	r := Judge(f)
	if len(r.Findings) != 1 || !strings.Contains(strings.Join(r.Findings[0].Evidence, "\n"), "ignored: pods") {
		t.Errorf("%+v", r.Findings)
	}
}

// Without containerd no version is known.
func TestNoEmptyVersionIsSaid(t *testing.T) {
	f := whole()
	f.Runtime = fact.Of[fact.Runtime]{Value: fact.Runtime{Name: "containerd"}, Err: errors.New("connection refused")}
	f.CRI.Err, f.NRI.Value.Socket = errors.New("away"), false
	f.Folder.Value.Networks[0].CNIVersion = "9.9.9"
	r := Judge(f)
	for _, x := range r.Findings {
		if said := all(x); strings.Contains(said, "containerd ;") || strings.Contains(said, "containerd  ") || strings.Contains(said, "containerd :") {
			t.Errorf("%s: %q", x.Check, said)
		}
		if x.Check == "nri" {
			t.Errorf("that NRI is off follows from containerd's being away: %+v", x)
		}
	}
}
