package judge

import (
	"regexp"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/redact"
	"github.com/cniscope/cniscope/test/harness"
)

// redacted returns a message whole, and redacted without and with a known configuration.
func redacted(t *testing.T, message string) map[string]string {
	t.Helper()
	var unknown, told redact.Call
	unknown.Name("web-7f9c6-x2b4n", "shop", "eth0", "bridge")
	told.Name("web-7f9c6-x2b4n", "shop", "eth0", "bridge")
	if !told.Configuration([]byte(`{"cniVersion":"1.0.0","name":"pods","type":"bridge","token":"Xq7Canary9ZtSecret"}`)) {
		t.Fatal("no configuration")
	}
	return map[string]string{"whole": message, "configuration unknown": unknown.Message(message), "configuration known": told.Message(message)}
}

// Redaction keeps the text that identifies a failure.
func TestKnownFailuresHaveRemedies(t *testing.T) {
	all := KnownFailures()
	if len(all) < 40 {
		t.Errorf("%d known failures, 40 at least", len(all))
	}
	for _, k := range all {
		name, _, _ := strings.Cut(k.Who, " ")
		if name == "" {
			name = "p"
		}
		messages := redacted(t, k.Example)
		if strings.Contains(k.Example, "the kernel refused") {
			messages = map[string]string{"": k.Example}
		}
		for how, message := range messages {
			got := recall(name, message)
			switch {
			case got == nil:
				t.Errorf("%s: nothing is known of %s", how, message)
			case got.Says != k.Says || got.Who != k.Who:
				t.Errorf("%s: %s\nis taken for %s", how, message, got.Example)
			case how != "":
				op := add(with(seen(plugin(name, 0, 50), wrote(message)), exit(1)))
				v := strict.Judge(op).Calls[op.Calls[0]].Verdict
				if v.Cause != CauseFailed || v.Remedy != got.Remedy || v.Remedy == "" || v.Report != k.Report {
					t.Errorf("%s: the verdict is %+v", message, v)
				}
			}
			plain(t, k.Remedy)
		}
		if k.Look == "" || k.Report != "" && !regexp.MustCompile(`^[\w-]+/[\w.-]+#\d+$`).MatchString(k.Report) {
			t.Errorf("%s: look at %q, report %q", k.Example, k.Look, k.Report)
		}
	}
}

// The remedy for damaged files of an ADD lists those that are empty, full of NUL, or cut off, and no others.
func TestDamagedFilesOfAnADDAreListed(t *testing.T) {
	const cut = `{"kind":"cniCacheV1","result":{"cniVersion":"1.0.0"`
	found := 0
	for _, k := range KnownFailures() {
		if !strings.Contains(k.Remedy, "interrupted ADD") {
			continue
		}
		found++
		pattern, dir, is := strings.Cut(strings.TrimPrefix(k.Look, "grep -raL '"), "' /")
		if !is || !strings.Contains(k.Remedy, k.Look+" lists") {
			t.Fatalf("look at %q: %s", k.Look, k.Remedy)
		}
		sound := regexp.MustCompile(pattern) // of a file without line feeds
		for content, want := range map[string]bool{
			"": false, "\x00\x00": false, cut: false, cut + "}}": true, cut + "}}\x00\x00": false,
		} {
			harness.Equal(t, sound.MatchString(content), want, dir, content, "is listed")
		}
	}
	harness.Equal(t, found, 2, "such failures")
	if got := recall("p", `failed to get network "pods" cached result: decoding version from network config: `+
		`invalid character '\x00' looking for beginning of value`); got == nil || !strings.Contains(got.Remedy, "/cni/results") {
		t.Errorf("a file full of NUL is taken for %+v", got)
	}
	if got := recall("flannel", `failed to parse netconf: invalid character '\x00' looking for beginning of value`); got == nil ||
		!strings.Contains(got.Remedy, "/cni/flannel") {
		t.Errorf("flannel's file full of NUL is taken for %+v", got)
	}
}

// Of a message of a known failure, redaction takes only ids of others, addresses of memory, patterns and queries.
func TestKnownFailuresLeaveWhole(t *testing.T) {
	foreign := regexp.MustCompile(
		`[0-9a-f]{64}|0xc[0-9a-f]{9}|cni-[0-9a-f-]{36}|CNI-DN-1|\[\^.*\$\]|webhook|\?timeout=\w+|: ` +
			`1021994$|pluginevent|VF ib4|30\.000000|"kernel\.shmmax"|ffffff00|set-xmark|Kube API`)
	for _, k := range KnownFailures() {
		if said := redacted(t, k.Example)["configuration known"]; strings.Contains(said, "‹") && !foreign.MatchString(k.Example) &&
			!strings.Contains(k.Example, "the kernel refused") {
			t.Errorf("of %s\nleaves %s", k.Example, said)
		}
	}
	for _, k := range KnownFailures() {
		for _, name := range []string{"web-7f9c6-x2b4n", "eth0"} {
			if said := redacted(t, k.Example)["configuration unknown"]; strings.Contains(k.Example, name) && !strings.Contains(said, name) {
				t.Errorf("of %s\nleaves %s without %s", k.Example, said, name)
			}
		}
	}
}

// A name in the message replaces a placeholder, if a shell takes it as one word.
func TestARemedyNamesWhatTheMessageNames(t *testing.T) {
	const other = " already has an IP address different from 10.244.2.1/24"
	const exists = "error getting IP from IPAM: resource already exists: "
	for said, want := range map[string]string{
		`failed to set bridge addr: "cni0"` + other:              "ip link delete cni0;",
		`failed to set bridge addr: \"cni0\"` + other:            "ip link delete cni0;",
		`failed to set bridge addr: "cni1"` + other:              "if two use cni1 (grep -r cni1 ",
		`failed to set bridge addr: "‹text 4›"` + other:          "ip link delete BRIDGE;",
		`failed to set bridge addr: "x;reboot"` + other:          "ip link delete BRIDGE;",
		`failed to set bridge addr: "$(reboot)"` + other:         "ip link delete BRIDGE;",
		`failed to set bridge addr: "--all"` + other:             "ip link delete BRIDGE;",
		strings.Repeat("a", 253) + other:                         "ip link delete a",
		strings.Repeat("a", 254) + other:                         "ip link delete BRIDGE;",
		"cni0\n" + other:                                         "ip link delete BRIDGE;",
		`failed to delegate add: failed: cni0` + other:           "ip link delete cni0;",
		exists + "fd::9: Address already assigned in block":      "release --ip=fd::9",
		`failed to create dummy: operation not supported`:        "modprobe dummy;",
		`failed to find plugin "macvlan" in path [/opt/cni/bin]`: "put macvlan into",
	} {
		if got := recall("bridge", said); got == nil || !strings.Contains(got.Remedy, want) {
			t.Errorf("%s: %v, want %s", said, got, want)
		}
	}
}

// Similar messages of another cause have another remedy, or none.
func TestTheSameWordsOfAnotherCause(t *testing.T) {
	for _, twin := range []struct{ who, says, own string }{
		// No address is left, but whose?
		{"host-local", "failed to allocate for range 0: no IP addresses available in range set: 10.42.2.1-10.42.2.254", "cniscope doctor"},
		{"whereabouts", "error at storage engine: Could not allocate IP in range: ip: 10.20.0.151 / - 10.20.0.154", "ippools.whereabouts"},
		{"azure-vnet", "Failed to allocate pool: Failed to delegate: Failed to allocate address: No available addresses", "subnet of the node pool"},
		{"cilium-cni", "unable to allocate IP via local cilium agent: [POST /ipam][502] postIpamFailure range is full", "pod CIDR"},
		{"aws-cni", "add cmd: failed to assign an IP address to container", "ENABLE_PREFIX_DELEGATION"},
		{"azure-vnet", "AllocateIPConfig failed: no IPs available, waiting on Azure CNS to allocate more", "log of azure-cns"},
		{"azure-vnet", "no IPs given", ""},
		{"calico", "failed to request IPv4 addresses: Assigned 0 out of 1 requested IPv4 addresses; No more free affine blocks and strict affinity enabled", "IPPool"},
		{"calico", "Assigned 0 out of 1 requested IPv6 addresses; No IPs available in pools: [fd00:10::/122]", "IPPool"},
		{"calico", "Assigned 0 out of 1 requested IPv4 addresses; HostReservedAttr: windows-reserved-IPAM-handle", "IPPool"},
		{"calico", "Assigned 0 out of 1 requested IPv4 addresses; Need to allocate an IPAM block but could not - limit of 20 blocks reached for this node", "max-blocks-per-host"},
		{"calico", "Assigned 0 out of 1 requested IPv4 addresses; the pool is paused", ""},
		{"calico", `error parsing pool "new-pool2": invalid CIDR address: new-pool2`, "ipv4pools"},
		{"calico", "The provided IP address is not in a configured pool", "ipAddrs"},
		{"calico", `error parsing pool "new-pool2": no such object`, ""},
		{"coil", "no IP addresses available", ""},
		{"host-local", "requested IP address 10.88.0.9 is not available in range set 10.88.0.1-10.88.0.254", "crictl pods --no-trunc"},
		{"host-local", "requested IP address 10.88.0.9 is not in range set 10.88.0.1-10.88.0.254", ""},
		{"cilium-cni", `[POST /ipam][502] postIpamFailure "all CIDR ranges are exhausted"`, "ciliumnode"},
		{"cilium-cni", `[POST /ipam][502] postIpamFailure unable to allocate from pool "a" (family ipv6): pool not (yet) available`, "CiliumPodIPPool"},
		{"cilium-cni", `[POST /ipam][502] postIpamFailure unable to allocate from pool "a" (family ipv6): pool unknown`, ""},
		{"calico", "error getting IP from IPAM: resource already exists: 10.224.200.20: Address already assigned in block", "calicoctl ipam release --ip="},
		{"calico", "error getting IP from IPAM: resource is gone: 10.224.200.20", ""},
		{"calico", "error getting IP from IPAM: resource already exists: 10.224.200.20", "a node that is Ready"},
		{"calico", "error getting IP from IPAM: resource already exists: IPAMHandle(k8s-pod-network.a)", ""},
		{"terway", "cmdAdd: error alloc ip rpc error: code = DeadlineExceeded desc = context deadline exceeded", "vSwitch"},
		{"terway", "result: error assign address, Aliyun API Error: Status Code: 403 Code: InvalidVSwitchId.IpNotEnough", "vSwitch"},
		{"terway", "error get config: context deadline exceeded", ""},
		{"terway", "error alloc ip: rpc error: code = Unknown desc = pod shop/web resource processing", ""},
		{"macvlan", "spiderpool IP allocation error: [POST /ipam/ip][500] postIpamIpFailure nic net1 do not match the current IP", ""},
		{"host-device", "failed to assign an IP address to container", ""},
		// Refused, but the caller is unknown.
		{"cilium-cni", `Get "http://localhost/v1/config": dial unix /var/run/cilium/cilium.sock: connect: connection refused`, "cilium-agent"},
		{"antrea", `rpc error: dial unix /var/run/antrea/cni.sock: connect: connection refused`, "antrea-agent"},
		{"cilium-cni", `Failed to create cilium agent client after 30.000000 seconds timeout: %!s(<nil>)`, "cilium-dbg status"},
		{"cilium-cni", "Put http:///var/run/cilium/cilium.sock/v1beta/endpoint/cilium-local:0: context deadline exceeded", "cilium-dbg status"},
		{"cilium-cni", `Get "https://a/version": context deadline exceeded`, ""},
		{"antrea", "failed to get of_port of OVS port web-1d1224: no such port", ""},
		{"weave-net", `bridge "weave" not present; did you launch weave?`, "start weave"},
		{"weave-net", `Bridge "weave" has no IP addresses`, ""},
		{"multus", `error adding container to network "aws-cni": unsupported CNI result version "1.0.0"`, "that reports this"},
		{"bridge", `invalid version "a": bad`, ""},
		{"multus-shim", `Post "http://dummy/cni": dial unix /run/multus/multus.sock: connect: connection refused`, "Multus daemon"},
		{"calico", `Get "https://10.96.0.1:443/api/v1/nodes/a": dial tcp 10.96.0.1:443: connect: connection refused`, "API server"},
		{"calico", "client: etcd cluster is unavailable or misconfigured; error #0: dial tcp 10.1.2.3:2379: connect: connection refused", ""},
		{"mesh", "dial tcp 127.0.0.1:50051: connect: connection refused", ""},
		{"azure-ipam", `Post "http://localhost:10090/network/requestipconfig": dial tcp 127.0.0.1:10090: connect: connection refused`, "azure-cns"},
		{"azure-vnet", `http request failed: Post "http://localhost:10090/network/requestipconfigs": dial tcp [::1]:10090: connectex: No connection could be made because the target machine actively refused it.`, "azure-cns-win"},
		{"azure-vnet", `Get "http://localhost:10091/": dial tcp 127.0.0.1:10091: connect: connection refused`, ""},
		{"aws-cni", "del cmd: failed to connect to network policy agent: context deadline exceeded", "aws-eks-nodeagent"},
		{"aws-cni", "del cmd: failed to connect to the agent: context deadline exceeded", ""},
		{"mesh", "dial unix /var/run/cilium/cilium.sock: connect: connection refused", ""},
		{"istio-cni", "unable to push CNI event (status code 500): no ztunnel connection", "start ztunnel"},
		{"istio-cni", "unable to push CNI event, error was 500", "start ztunnel"},
		{"istio-cni", "failed to contact node Istio CNI agent: failed to send event request: context deadline exceeded", ""},
		// There already, but what?
		{"bridge", `failed to set bridge addr: could not add IP address to "cni0": file exists`, "same time"},
		{"bridge", "failed to make veth pair: file exists", ""},
		{"bandwidth", "create ifb: file exists", ""},
		{"mesh", "create ingress qdisc: file exists", ""},
		{"antrea", "listen tcp :10350: bind: address already in use", ""},
		{"ptp", "failed to add route '0.0.0.0/0 via 10.88.0.1 dev net1': file exists", "out of one of the pod's networks"},
		{"calico", "error adding host side routes for interface: cali1, error: failed to add route (Dst: 10.64.4.8/32, Scope: link): file exists", "whose pod is gone"},
		{"calico", "error adding host side routes for interface: cali1, error: failed to add route file exists", "whose pod is gone"},
		{"aws-cni", "add command: failed to setup network: setupNS: failed to add pod rule: file exists", "whose pod is gone"},
		{"egress-cni", "failed to add route on host: file exists", "whose pod is gone"},
		{"aws-cni", "add command: failed to setup network: setup NS network: failed to add default route: file exists", "out of one of the pod's networks"},
		{"router", "failed to add routes of table 7: file exists", ""},
		{"macvlan", `failed to rename macvlan to "net1": file exists`, ""},
		// Permission: of a file, of netlink, of IPv6
		{"tuning", `failed to create sysctl file: open "/etc/cni/tuning/allowlist.conf": permission denied`, ""},
		{"calico", "open /etc/cni/net.d/calico-kubeconfig: permission denied", ""},
		{"bridge", `failed to add IP addr {Version:6} to "eth0": permission denied`, "disable_ipv6"},
		{"bridge", ", because the kernel refused RTM_NEWLINK (EPERM)", "CAP_NET_ADMIN"},
		{"portmap", "iptables v1.8.2 (legacy): can't initialize iptables table `nat': Permission denied (you must be root)", "CAP_NET_ADMIN"},
		{"bridge", ", because the kernel refused RTM_NEWLINK (EACCES)", ""},
		{"p", "dial unix /run/containerd/containerd.sock: connect: permission denied", ""},
		// No space, but where?
		{"multus", "failed to create fsnotify watcher: no space left on device", "raise fs.inotify.max_user_watches"},
		{"multus", `failed to watch "/etc/cni/net.d": no space left on device`, "max_user_watches"},
		{"multus", "write /var/lib/watch/a: no space left on device", "df -i"},
		{"mesh", "mkdir /sys/fs/cgroup/memory/a: no space left on device", "systemd-cgls"},
		{"mesh", "write /sys/fs/cgroup/cpuset/a/cgroup.procs: no space left on device", ""},
		{"mesh", "write /proc/sys/net/core/a: no space left on device", ""},
		// Not the API server's fault
		{"multus", `failed calling webhook "a.b.c": failed to call webhook: Post ` +
			`"https://a.b.svc:443/v1/admit?timeout=3s": x509: certificate signed by unknown authority`, "caBundle"},
		{"multus", `failed calling webhook "a.b.c": Post "https://a.b.svc:443/api/a": dial tcp: lookup a.b.svc on ` +
			`10.0.0.2:53: no such host`, "webhook a.b.c"},
		{"multus", `failed calling webhook "‹text 9›": Post "https://‹text 9›/api/a": dial tcp 10.96.3.4:443: ` +
			`connect: connection refused`, "webhook WEBHOOK"},
		{"multus", `admission webhook "a.b.c" denied the request: pods "web" not found in the list`, "policy"},
		{"calico", `Get "https://10.96.0.1:443/api/v1/nodes/a": proxyconnect tcp: dial tcp 10.1.2.3:3128: connect: ` +
			`connection refused`, "NO_PROXY"},
		{"calico", "transport: authentication handshake failed: x509: certificate signed by unknown authority", ""},
		{"calico", "transport: authentication handshake failed: x509: certificate has expired or is not yet valid", ""},
		{"ipamd", `Post "https://ec2.eu-west-1.amazonaws.com/": net/http: TLS handshake timeout`, ""},
		// Refused values and names
		{"bridge", "write /proc/sys/net/ipv4/conf/cni0/forwarding: invalid argument", ""},
		{"vlan", "failed to create vlan: numerical result out of range", ""},
		{"sriov", "LoadConf(): vlan id 5000 invalid: value must be in the range 0-4094", "1 to 4094"},
		{"sriov", "LoadConf(): vlan QoS PCP 9 invalid: value must be in the range 0-7", ""},
		{"tuning", `failed to set "net1" address to "e7:d1:44:8d:65:b0": cannot assign requested address`, "unicast"},
		{"sriov", "failed to set netlink MAC address to e7:d1:44:8d:65:b0: cannot assign requested address", ""},
		{"host-device", "failed to move link file exists", "another name on the node"},
		{"host-device", `failed to move link failed to rename device "eth1" to "net1": file exists`, ""},
		{"sriov", `failed to get VF information: "open /sys/class/net/ens1/device/sriov_numvfs: no such file or directory"`, ""},
		// iptables' exit code 4
		{"portmap", "running [/usr/sbin/iptables -t nat -C POSTROUTING --wait]: exit status 4: Another app is currently holding the xtables lock", "minSyncPeriod"},
		{"portmap", "running [/usr/sbin/iptables -t nat -A X --wait]: exit status 4: iptables v1.8.9 (nf_tables):  RULE_APPEND failed (Invalid argument): rule in chain X", ""},
		{"mesh", "could not apply iptables rules: exit status 4", ""},
		{"iptables-nft", ", because the kernel refused NFT_MSG_NEWRULE (EINVAL)", "by hand"},
		{"iptables", ", because the kernel refused NFT_MSG_NEWRULE (EBUSY)", ""},
		{"portmap", "iptables/1.8.9 Failed to initialize nft: Protocol not supported", "nft_compat"},
		{"portmap", "iptables v1.8.9 (nf_tables): Could not fetch rule set generation id: Device or resource busy", ""},
		{"portmap", "exit status 2: iptables v1.8.7 (legacy): Couldn't load target `KUBE-MARK-MASQ':No such file or directory", "externalSetMarkChain"},
		{"portmap", "iptables v1.8.2 (nf_tables): Chain 'CNI-6e99e89ea38dea2f8ce2dada' does not exist", ""},
		{"portmap", "Warning: Extension comment revision 0 not supported, missing kernel module?", "modprobe xt_comment"},
		{"firewall", "Warning: Extension rpfilter revision 0 not supported, missing kernel module?", "modprobe ipt_"},
		{"firewall", "Warning: Extension ttl revision 0 not supported, missing kernel module?", "modprobe ipt_ttl"},
		{"istio-cni", "(status code 500): exit status 2: Warning: Extension CONNMARK revision 0 not supported, missing kernel module?", "modprobe ipt_"},
		{"portmap", "exit status 2: iptables v1.8.3 (legacy): Couldn't load target `CNI-ab775a86f094eaf654e6e888':No such file or directory", ""},
		{"flannel", "exit status 4: Fatal: can't open lock file /run/xtables.lock: Permission denied", ""},
		{"flannel", "exit status 4: Fatal: can't open lock file /run/xtables.lock: Is a directory", "rmdir"},
		{"flannel", "exit status 4: iptables: Resource temporarily unavailable.", "iptables-legacy"},
		{"flannel", "recvmsg: Resource temporarily unavailable", ""},
		// Memory, files, a signal
		{"cilium-cni", "failed to program the eBPF map: cannot allocate memory", ""},
		{"portmap", "fork/exec /usr/sbin/iptables: cannot allocate memory", "overcommit"},
		{"multus", "failed to create fsnotify watcher: too many open files", "inotify.max_user_instances"},
		{"multus", "open /var/lib/cni/multus/x: too many open files", "LimitNOFILE"},
		{"p", "killed by SIGILL", "lscpu"},
		{"p", "killed by SIGKILL", ""},
		{"azure-vnet", "runtime error: invalid memory address or nil pointer dereference; goroutine 1 [running]:", "upgrade the plugin"},
		{"calico", "Calico CNI panicked during ADD: runtime error: invalid memory address", "upgrade the plugin"},
		{"azure-vnet", `netplugin failed: "panic: runtime error: index out of range"`, "upgrade the plugin"},
		{"p", "the agent said: panic: runtime error: index out of range", ""},
		// Busy, not supported, not found
		{"sriov", "failed to set netlink MAC address: device or resource busy", ""},
		{"macvlan", "device or resource busy", "another master"},
		{"bridge", `plugin type=\"bridge\" failed (add): failed to find plugin \"firewall\" in path [/opt/cni/bin]`, "put firewall into"},
		{"nerdctl", `needs CNI plugin "bridge" to be installed in CNI_PATH ("/opt/cni/bin")`, "put bridge into"},
		{"bridge", `failed to create bridge "cni0": could not add "cni0": operation not permitted`, "CAP_NET_ADMIN"},
		{"ovs", "failed to create lock file /a: operation not permitted", ""},
		{"bridge", `failed to set bridge addr: could not add IP address 10.22.0.1/16 to "cni0": file exists`, "same time"},
		{"multus", `cannot set "host-device" interface name to "net1": validateIfName: interface name net1 already exists`, "its own interface name"},
		{"multus", "validateIfName: no net namespace found", ""},
		{"podman", `plugin bridge does not support config version "1.0.0"`, "set cniVersion"},
		{"podman", "plugin bridge does not support CHECK", ""},
		{"istio-cni", "stat /etc/cni/net.d/ZZZ-istio-cni-kubeconfig: no such file or directory", "DaemonSet pod"},
		{"istio-cni", "stat /etc/cni/net.d/10-a.conflist: no such file or directory", ""},
		{"sriov", "device or resource busy", ""},
		{"host-device", ", because the kernel refused RTM_NEWLINK (EBUSY)", ""},
		{"bridge", "failed to make veth pair: invalid argument", "65535"},
		{"bridge", `failed to lookup "veth1a2b3c4d": Link not found`, ""},
		{"bandwidth", "adding link: operation not supported", "ifb"},
		{"mesh", "adding link: operation not supported", ""},
		// Unauthorized, forbidden
		{"calico", "error getting ClusterInformation: connection is unauthorized: Unauthorized", "calico-kubeconfig"},
		{"calico", "Unauthorized", "calico-kubeconfig"},
		{"multus", `plugin type="calico" failed (add): Unauthorized`, "calico-kubeconfig"},
		{"multus", "Multus: [shop/web]: error getting pod: Unauthorized", "multus.d"},
		{"istio-cni", "error retrieving pod: Unauthorized", "istio-cni-node"},
		{"whereabouts", "error at storage engine: Unauthorized", "app=whereabouts"},
		{"mesh", "Unauthorized", ""},
		{"aws-cni", "api error UnauthorizedOperation: You are not authorized to perform this operation", ""},
		// A file, a disk, a time
		{"flannel", "open /run/flannel/subnet.env: permission denied", ""},
		{"cilium-cni", "failed to program the eBPF map: no space left on device", ""},
		{"host-local", "write /var/lib/cni/networks/pods/10.88.0.9: no space left on device", "df -i"},
		{"portmap", "unable to enable route_localnet: open /proc/sys/net/ipv4/conf/cni0/route_localnet: read-only file system", "remount,rw /proc/sys"},
		{"host-local", "mkdir /var/lib/cni/networks: read-only file system", "dataDir"},
		{"tuning", "open /proc/sys/net/core/nothing: no such file or directory", "tuning configuration"},
		{"loopback", "open /proc/sys/net/ipv6/conf/lo/disable_ipv6: no such file or directory", ""},
		{"bridge", "failed to enable forwarding: open /proc/sys/net/ipv4/ip_forward: permission denied", ""},
		{"linkerd-cni", "exit status 12", ""},
		{"linkerd-cni", "exit status 127: iptables-nft: Bad built-in chain name", ""},
		{"p", `exec: "nsenter": permission denied`, ""},
		{"p", `ARGS: invalid pair "IgnoreUnknown"`, ""},
		{"sriov", "failed to move vf 0 to netns: no such device", ""},
		{"antrea", `failed to Statfs "/proc/12764/ns/net": no such file or directory`, "its process ended"},
		{"antrea", `failed to Statfs "/host/proc/12764/ns/net": no such file or directory`, "its process ended"},
		{"cilium-cni", "opening netns pinned at /var/run/netns/cni-2739c4ea-53b0-b820-12c8-cef6ac666ee2: no such file or directory", "its process ended"},
		{"cilium-cni", "opening netns pinned at /var/run/netns/a: permission denied", ""},
		{"calico", `stat C:\CalicoWindows\nodename: The system cannot find the file specified.: check that the calico/node container is running and has mounted /var/lib/calico/`, "calico-node-windows"},
		{"calico", `stat C:\CalicoWindows\nodename: Access is denied.: check that the calico/node container is running`, ""},
		{"calico", "stat /srv/nodename: no such file or directory: check that the calico/node container is running", "calico-node-windows"},
		{"calico", "stat /var/lib/calico/nodename: permission denied: check that the calico/node container is running", ""},
		{"cilium-cni", "unable to create veth pair: operation not supported", "modprobe veth"},
		{"cilium-cni", "unable to create veth pair: file exists", ""},
		{"sriov", "error bringing interface up in container ns: no such device", ""},
		{"whereabouts", "open /etc/cni/net.d/whereabouts.d/whereabouts.kubeconfig: permission denied", ""},
		{"calico", "open /etc/cni/net.d/calico-kubeconfig: no such file or directory", "install-cni"},
		{"kube-ovn", "request ip return 500 configure nic failed no address for eth0", ""},
		{"kube-ovn", "network 10.1.2.3/24 with gateway 10.1.2.1 is not ready for interface eth0", "disableGatewayCheck"},
		{"kube-ovn", "ovn-nbctl: unix:/var/run/ovn/ovnnb_db.sock: database connection failed (No such file or directory)", ""},
		{"kube-ovn", "ovs-vsctl: unix:/var/run/openvswitch/db.sock: database connection failed (Protocol error)", ""},
		{"dhcp", "error dialing DHCP daemon: error calling DHCP.Release: lease not found: a/mynet/net1", ""},
		{"loopback", "open /proc/sys/net/ipv4/conf/lo/rp_filter: no such file or directory", ""},
		// JSON of another type: of the configuration, of an answer
		{"tuning", "failed to load netconf: json: cannot unmarshal array into Go struct field TuningConf.sysctl of type map[string]string", "option sysctl"},
		{"calico", "json: cannot unmarshal string into Go value of type types.Result", ""},
		{"bridge", "failed to load netconf: invalid character '}' looking for beginning of object key string", "jq ."},
		{"calico", "invalid character '<' looking for beginning of value", ""},
		// A DEL: of a file that is empty or gone, or of another
		{"bridge", "failed to parse netconf: unexpected end of JSON input", "jq ."},
		{"multus", "error in getting result from DelNetworkList: failed to parse netconf: unexpected end of JSON input", "/var/lib/cni/flannel"},
		{"multus", "error loading netconf: failed to load netconf: unexpected end of JSON input", "jq ."},
		{"multus-shim", `plugin type="flannel" failed (delete): failed to parse netconf: unexpected end of JSON input`, "/var/lib/cni/flannel"},
		{"flannel", "failed to load netconf: unexpected end of JSON input", "jq ."},
		{"multus", `plugin type="flannel" name="cbr0" failed (delete): failed to parse netconf: unexpected end of JSON input`, "/var/lib/cni/flannel"},
		{"multus", `plugin type="bond" failed (add): failed to parse netconf: invalid character '}' looking for beginning of value`, "jq ."},
		{"multus", `failed to get network "pods" cached result: failed to convert cached result version "0.1.0" to config version "0.4.0"`, ""},
		{"multus", `failed to get network "pods" cached result: open /var/lib/cni/results/pods-web-eth0: input/output error`, ""},
		{"multus", "error reading the delegates: open /var/lib/cni/multus/web: input/output error", ""},
		{"calico", "resource does not exist: WorkloadEndpoint(shop/web) with error: conflict", ""},
		{"cilium-cni", "failed to acquire deletion queue: failed to create deletion queue directory /var/run/cilium/deleteQueue: input/output error", ""},
		{"cilium-cni", "failed to write deletion file /var/run/cilium/deleteQueue/a.delete: input/output error", ""},
		{"ovs", "error reading cached NetConf in /var/lib/cni/ovs-cni/cache with name web-net1", ""},
		{"ib-sriov", "error reading cached NetConf in /var/lib/cni/ib-sriov with name web-net1", "ib-sriov)"},
		{"host-local", "remove /var/lib/cni/networks/pods/10.88.0.9: read-only file system", "dataDir"},
		{"host-local", "remove /var/lib/cni/networks/pods/10.88.0.9: permission denied", "restorecon"},
		{"host-local", "remove /var/lib/cni/networks/pods/10.88.0.9: device or resource busy", ""},
		// No answer: of the API server, of another
		{"calico", "Get https://10.233.0.1:443/api/v1/namespaces/shop: dial tcp 10.233.0.1:443: i/o timeout", "API server"},
		{"calico", `Get "https://[10.96.0.1]:443/apis/crd.projectcalico.org/v1/ippools": dial tcp 10.96.0.1:443: i/o timeout`, "API server"},
		{"calico", `Get "https://[10.96.0.1]:443/api/v1/namespaces/shop": net/http: TLS handshake timeout`, "NO_PROXY"},
		{"calico", `Get "https://[10.1.2.3]/v2/": dial tcp 10.1.2.3:443: i/o timeout`, ""},
		{"calico", "Get https://registry.example.com/v2/: dial tcp 10.1.2.3:443: i/o timeout", ""},
		{"calico", `Get "https://registry.example.com/v2/": x509: certificate is valid for a, not registry.example.com`, ""},
		{"calico", `Get "https://10.96.0.1:443/api/v1/nodes/a": EOF`, ""},
		{"multus-shim", `CmdAdd (shim): failed to send CNI request: Post "http://dummy/cni": EOF: StdinData: {"name":"pods"}`, "the agent that the plugin asks"},
		{"multus", `error waiting for pod: Get "https://10.96.0.1:443/api/v1/namespaces/shop/pods/web": context deadline exceeded`, "readyz"},
		{"dra", `Get "https://registry.example.com/v2/": context deadline exceeded`, ""},
		{"calico", "Get https://10.233.0.1:443/api/v1/namespaces/shop: dial tcp 10.233.0.1:443: connect: no route to host", "ip route get"},
		{"calico", "Get https://api.x:443/api/v1/namespaces/shop: dial tcp: lookup api.x on 10.0.0.2:53: no such host", "resolv.conf"},
		{"calico", "the server was unable to return a response in the time allotted, but may still be processing the request (get namespaces shop)", "etcd"},
		{"multus", "error waiting for pod: timed out waiting for the condition", ""},
		{"loopback", "interrupted system call", "start fewer pods"},
		{"p", "open /etc/a: interrupted system call", ""},
		{"p", `failed to find interface name "net1": interrupted system call`, "start fewer pods"},
		{"p", "failed to acquire lock: interrupted system call", ""},
		{"ovn-k8s-cni-overlay", "timed out waiting for pod flows for pod: web", "ovn-controller"},
		{"ovn-k8s-cni-overlay", "failed to get pod annotation: timed out waiting for annotations: context deadline exceeded", "ovnkube-controller"},
		{"ovn-k8s-cni-overlay", "failed to configure pod interface: timed out waiting for OVS port binding", "ovn-controller"},
		{"ovn-k8s-cni-overlay", "timed out while waiting for OVS port binding", "ovn-controller logged"},
		{"ovn-k8s-cni-overlay", "error while waiting on flows for pod: timed out waiting for OVS flows", "ovn-controller logged"},
		{"ovn-k8s-cni-overlay", "failed to get pod annotation: timed out waiting for the condition", "ovnkube-controller"},
		{"linkerd-cni", `Get "https://[172.20.0.1]:443/api/v1/namespaces/shop/pods/web": Forbidden`, "NO_PROXY"},
		{"linkerd-cni", `Get "https://[172.20.0.1]:443/api/v1/namespaces/shop/pods/web": Moved`, ""},
		{"calico", `Get "https://10.96.0.1:443/apis/crd.projectcalico.org/v1/ippools": Tunnel Connection Failed`, "NO_PROXY"},
		{"calico", `Get "https://10.96.0.1:443/apis/crd.projectcalico.org/v1/ippools": Tunnel gone`, ""},
		// Alike in their last words
		{"host-local", "invalid CIDR address: 10.1.0.1", ""},
		{"calico", "no podCidr given", ""},
		{"kube-flannel", `failed to acquire lease: node "worker-1" pod cidr not assigned`, "--cluster-cidr"},
		{"kube-router", "node.Spec.PodCIDR not set for node: worker-1", "--cluster-cidr"},
		{"macvlan", "failed to create macvlan: no such device", ""},
		{"multus", "failed to create macvlan: invalid argument", "set mtu to at most"},
		{"kube-flannel", "stat /proc/sys/net/bridge/bridge-nf-call-iptables: permission denied", ""},
		{"weave", "Network 10.32.0.0/12 is not a route", ""},
		{"multus", "the server could not find the metric a for pods", ""},
		{"portmap", `running [iptables -t nat -A X -j MASQUERADE --random-fully]: exit status 2: iptables v1.8.7: unknown option "--random-fully"`, ""},
		{"calico", "fork/exec /opt/cni/bin/portmap: text file busy", ""},
		{"contiv", "Unauthorized", ""},
		{"calico", "Unauthorized: the pool is reserved", ""},
		{"multus", `plugin type="flannel" failed (add): failed to find plugin "flannel" in path [/opt/cni/bin]`, "restart it if it runs), which installs flannel"},
		{"multus", `plugin type="flannel" failed (add): failed to find plugin "bridge" in path [/opt/cni/bin]`, "put bridge into"},
		{"multus", "cannot find a network-attachment-definition (a) in namespace (shop): not found", "add the NetworkAttachmentDefinition"},
		{"multus", "cannot find a network-attachment-definition (a) in namespace (shop): Unauthorized", ""},
		{"multus", "err in GetCNIConfigFromFile: no network available in the name a in cni dir /a", "into the definition"},
		{"kubelet", "Unable to update cni config: No networks found in /etc/cni/net.d", ""},
		{"multus-shim", `CNI request failed: 'no': StdinData: {"readinessindicatorfile":"/host/etc/cni/net.d/10-a.conflist"}`, ""},
		{"multus", "pod Network Attachment Selection Annotation JSON format: json: cannot unmarshal string into Go struct field " +
			"NetworkSelectionElement.ips of type []string", "the pod's annotation"},
		{"multus", `expected pod "web", but the cache has none`, ""},
		{"router", "failed to add rule table 500: no such file or directory", ""},
		{"cilium-cni", "invalid chaining-mode kube-router", "generic-veth"},
		{"cilium-cni", "PrevResult supplied in chaining mode aws-cni", ""},
		{"cilium-cni", "CNI PrevResult supplied, but not in chaining mode -- this is invalid", "before cilium-cni out of"},
		{"calico", "Calico is currently busy", ""},
		{"calico", "Calico is currently not ready to process requests", "if datastoreReady is false"},
		{"weave", "Network 10.32.0.0/12 overlaps with existing route 10.0.0.0/8 on host.", "otherwise set IPALLOC_RANGE"},
		{"aws-cni", "rpc error: code = FailedPrecondition desc = wrong server version", ""},
		{"terway", "can't found dev by name eth1", ""},
		{"terway", "can't found dev by mac 00:16:3e:01:c2:e8", "and dmesg says"},
		{"sriov", `failed to get VF information: "lstat /sys/bus/pci/devices/0000:41:00.0/physfn/net: no such file or directory"`, "drain the node and set sriov_numvfs"},
		{"sriov", `failed to get VF information: "lstat /sys/bus/pci/devices/0000:41:00.0/physfn/net: permission denied"`, ""},
		{"azure-vnet", "Failed to create endpoint: TransparentEndpointClient Error : operation not permitted", ""},
		// Quoted by another plugin
		{"multus-shim", `error adding container to network "n": plugin type="tuning" failed (add): open /proc/sys/net/core/nothing: no such file or directory`, "tuning configuration"},
		{"multus-shim", `error adding container to network "tuning": open /proc/sys/net/core/nothing: no such file or directory`, ""},
		{"multus", `plugin type=\"aws-cni\" name=\"a\" failed (add): add cmd: failed to setup network policy`, "aws-eks-nodeagent"},
		{"p", `err="plugin type=\\\"azure-vnet\\\" failed (add): no IPs: timed out locking store"`, "azure-vnet"},
		{"p", "plugin type='azure-vnet' failed (add): no IPs: timed out locking store", "azure-vnet"},
		{"p", "plugin type='azure-vnet-x' failed (add): no IPs: timed out locking store", ""},
		{"p", "context deadline exceeded", ""},
		{"p", "", ""},
	} {
		for how, message := range redacted(t, twin.says) {
			if how != "whole" && strings.Contains(twin.says, "the kernel refused") {
				continue
			}
			got := recall(twin.who, message)
			switch {
			case got == nil && twin.own != "":
				t.Errorf("%s: %s: %s: no remedy, want %s", how, twin.who, message, twin.own)
			case got != nil && (twin.own == "" || !strings.Contains(got.Remedy, twin.own)):
				t.Errorf("%s: %s: %s\nhas the remedy of another failure: %s", how, twin.who, message, got.Remedy)
			}
		}
	}
}

// A known failure changes the remedy, not the cause.
func TestAVerdictHasTheRemedyOfTheFailure(t *testing.T) {
	bridge := `failed to set bridge addr: "cni0" already has an IP address different from 10.244.2.1/24`
	rulings(t, map[string]ruling{
		"of its words": {
			op: add(with(seen(plugin("bridge", 0, 50), wrote(bridge)), exit(1))), cause: CauseFailed,
			remedy: `ip link delete cni0;`, report: "flannel-io/flannel#1850",
		},
		"of the refused request, where it wrote nothing": {
			op: add(with(seen(plugin("bridge", 0, 50), refused("RTM_NEWLINK", "EXFULL", from(12, 13))), exit(1))), cause: CauseFailed, remedy: `^lower maxPods`,
		},
		"not of a refused request, where it names something else": {
			op: add(with(seen(plugin("bridge", 0, 50), wrote("no way"), refused("RTM_NEWLINK", "EXFULL", from(12, 13))), exit(1))), cause: CauseFailed, remedy: `^$`,
		},
		"of its command's refused request": {
			op: add(with(seen(plugin("mesh", 0, 50, seen(with(ran("iptables-nft", 10, 20), exit(4)), refused("NFT_MSG_NEWRULE", "EPERM", from(12, 13)))),
				wrote("exit status 4")), exit(1))),
			cause: CauseFailed, remedy: `CAP_NET_ADMIN`,
		},
		"of the agent that should listen there": {
			op: add(with(seen(plugin("dhcp", 0, 50), wrote("error dialing DHCP daemon: dial unix /run/cni/dhcp.sock: connect: no such file or directory"),
				dialled("unix", "/run/cni/dhcp.sock", from(1, 2), turnedDown(1, "ENOENT"))), exit(1))),
			cause: CauseRefused, remedy: `/opt/cni/bin/dhcp daemon`,
		},
		"and of what was slow before, none": {
			op:    add(with(seen(plugin("host-local", 0, 5000), wrote("no IP addresses available in range set: 10.42.2.1-10.42.2.254"), slept(from(0, 4900))), exit(1))),
			cause: CauseFailed, remedy: `^run cniscope doctor: its check leaked-leases`,
		},
	})
}
