package judge

import "github.com/cniscope/cniscope/pkg/event"

const (
	noMaster = "set master in the CNI configuration to an interface of this node (ip -br link lists them); " +
		"nodes with other names need a network of their own"
	otherMaster = "take another master: an interface carries macvlan or ipvlan, not both, and neither if it is a port " +
		"of a bridge, bond or Open vSwitch; then name the bridge or bond as master"
	itsState = " shows its state, and kubectl logs --previous shows its last lines"
)

// askedServer lacks its path if its address has brackets (Calico) and is redacted.
const askedServer = `https://([^"]*/apis?/[^"]*|\[‹[^›]+›\]:‹[^›]+›)"?: `

var knownFailures = []KnownFailure{
	// bridge, ptp, macvlan, ipvlan, vlan, host-device.
	{
		"", `"?(?P<BRIDGE>[^" ]+|‹[^›]+›)"? already has an IP address different from`,
		"give each network its own bridge name if two use BRIDGE (grep -r BRIDGE /etc/cni/net.d); otherwise move the pods " +
			"off BRIDGE (kubectl drain NODE --ignore-daemonsets), then run ip link delete BRIDGE; the next ADD creates it " +
			"with this node's address",
		"ip -br address show BRIDGE; ip -br link show master BRIDGE", event.FoundBridge, "BRIDGE", "flannel-io/flannel#1850", `failed to set bridge addr: "cni0" already has an IP address different from 10.244.2.1/24`,
	},
	{
		"", `could not add IP address .*: file exists`,
		"delete the pod if the kubelet does not retry (kubectl delete pod): another ADD gave the new bridge the " +
			"same address at the same time",
		"ip -br address show type bridge", "", "", "containerd/cri#1024", `failed to set bridge addr: could not ` +
			`add IP address to "cni0": file exists`,
	},
	{
		"", `could not set bridge's mac: invalid argument`,
		"fix the failure of the ADD before, which left the bridge without a MAC address; a later ADD succeeds, so delete " +
			"the pod if the kubelet does not retry (kubectl delete pod)",
		"ip -br link show type bridge", "", "", "containernetworking/plugins#620",
		"failed to set bridge addr: could not set bridge's mac: invalid argument",
	},
	{
		"", `already exists but is not a bridge`,
		"set another bridge name in the CNI configuration: that interface is of another kind",
		"ip -d link show cni0", event.FoundMaster, "cni0", "", `failed to create bridge "cni0": "cni0" already exists but is not a bridge`,
	},
	{
		"", `(to bridge (?P<BRIDGE>\S+): )?exchange full|refused RTM_\w+ \(EXFULL\)`,
		"lower maxPods in the kubelet's configuration: the kernel gives a bridge 1,023 ports; release attachments of sandboxes that are gone, which cniscope doctor lists",
		"ip -o link show master BRIDGE", event.FoundPorts, "BRIDGE", "weaveworks/weave#3258", `failed to connect "veth1a2b3c4d" to bridge cni0: exchange full`,
	},
	{
		"", `failed to create bridge .*: operation not supported`,
		"load the module (modprobe bridge), or reboot into the kernel whose modules are installed; a kernel of your own needs CONFIG_BRIDGE and CONFIG_BRIDGE_VLAN_FILTERING",
		"modinfo bridge; ls /lib/modules/$(uname -r)", event.FoundModule, "bridge", "containernetworking/plugins#370", `failed to create bridge "cni0": could not add "cni0": operation not supported`,
	},
	{
		"", `failed to create bridge .*: numerical result out of range`,
		"set bridge in the CNI configuration to a name of up to 15 characters",
		"grep -r bridge /etc/cni/net.d", "", "", "genuinetools/netns#16", `failed to create bridge ` +
			`"cni-of-all-tenants": could not add "cni-of-all-tenants": numerical result out of range`,
	},
	{
		"", `(failed to make|unable to create) veth pair: operation not supported`,
		"load the module (modprobe veth), or reboot if an upgrade removed the modules of the running kernel",
		"modinfo veth; ls /lib/modules/$(uname -r)", event.FoundModule, "veth", "podman-container-tools/podman#12246", "failed to make veth pair: operation not supported",
	},
	{
		"", `failed to make veth pair: invalid argument`,
		"set mtu in the CNI configuration to a number from 68 to 65535; if it is one, the kernel refused another value " +
			"that the plugin set for the pair",
		"grep -r mtu /etc/cni/net.d", "", "", "containernetworking/plugins#877", "failed to make veth pair: invalid argument",
	},
	{
		"", `container veth name (provided )?\(.*\) .*already exists|validateIfName: interface name .+ already exists`,
		"give each network of the pod its own interface name; delete the pod if an earlier ADD was cut short, so that it gets a new network namespace",
		"ip netns exec NETNS ip -br link", "", "", "redhat-nfvpe/cni-route-override#1", `container veth name ("eth0") peer provided ("veth1a2b3c4d") already exists`,
	},
	{
		"", `cannot set hairpin mode and promiscuous mode at the same time`,
		"set hairpinMode or promiscMode in the CNI configuration, not both",
		"grep -rE 'hairpinMode|promiscMode' /etc/cni/net.d", "", "", "", "cannot set hairpin mode and promiscuous mode at the same time",
	},
	{
		"", `(failed to add IP addr|could not add IP address) .*: permission denied|refused RTM_NEWADDR \(EACCES\)`,
		"set net.ipv6.conf.all.disable_ipv6 and net.ipv6.conf.default.disable_ipv6 to 0 (sysctl -w), or take the IPv6 range out of the CNI configuration",
		"sysctl net.ipv6.conf.all.disable_ipv6 net.ipv6.conf.default.disable_ipv6", "", "", "cri-o/cri-o#3555", `failed to set bridge addr: could not add IP address to "cni0": permission denied`,
	},
	{
		"", `open /proc/sys/net/\S.*/accept_dad: no such file or directory`,
		"replace the CNI plugins in the CNI bin directory with a release of 0.7.0 or later, which works without IPv6, or boot without ipv6.disable=1",
		"cat /proc/cmdline; ls /proc/sys/net/ipv6", "", "", "containernetworking/plugins#102", "open /proc/sys/net/ipv6/conf/eth0/accept_dad: no such file or directory",
	},
	{
		"", `open /proc/sys/net/(ipv6|‹[^›]+›)/\S.*/forwarding: no such file or directory`,
		"take the IPv6 range out of the CNI configuration, or boot without ipv6.disable=1, if ls /proc/sys/net/ipv6 shows " +
			"nothing; otherwise the interface that the message names was removed first",
		"cat /proc/cmdline; ls /proc/sys/net/ipv6", "", "", "cilium/cilium#9034", "failed to enable forwarding: open " +
			"/proc/sys/net/ipv6/conf/all/forwarding: no such file or directory",
	},
	{
		"", `failed to add IP addr .*: address already in use`,
		"delete the pod that still holds this address on the same master, or request another address; a deleted pod holds it until its sandbox is gone (crictl pods)",
		"crictl pods; ip netns exec NETNS ip -br address", "", "", "k8snetworkplumbingwg/multus-cni#1051", `failed to add IP addr {Interface:0xc000208400 Address:{IP:10.2.27.108 Mask:ffffff00} Gateway:10.2.27.1} to "net1": address already in use`,
	},
	{
		"", `failed to create (macvlan|ipvlan): device or resource busy`,
		otherMaster,
		"ip -d link show MASTER; ip -o link show type macvlan; ip -o link show type ipvlan", event.FoundMaster, "", "k8snetworkplumbingwg/multus-cni#1339", "failed to create macvlan: device or resource busy",
	},
	{
		"", `failed to create macvlan: invalid argument`,
		"take another master if ip -d link show MASTER says link/infiniband (or replace macvlan with ipoib or ib-sriov), or " +
			"if a pod has it in mode passthru; otherwise set mtu to at most that of the master",
		"ip -d link show MASTER", event.FoundMaster, "", "Mellanox/network-operator#1017",
		"failed to create macvlan: invalid argument",
	},
	{
		"macvlan ipvlan", `refused RTM_NEWLINK \(EBUSY\)|^device or resource busy$`,
		otherMaster,
		"ip -d link show MASTER", event.FoundMaster, "", "k8snetworkplumbingwg/multus-cni#1339", ", because the kernel refused RTM_NEWLINK (EBUSY)",
	},
	{
		"", `failed to create (?P<KIND>macvlan|ipvlan|dummy): operation not supported`,
		"load the module: modprobe KIND; reboot if an upgrade removed the modules of the running kernel",
		"modinfo KIND", event.FoundModule, "KIND", "", "failed to create ipvlan: operation not supported",
	},
	{
		"", `failed to create vlan: operation not supported`,
		"load the module: modprobe 8021q; reboot if an upgrade removed the modules of the running kernel",
		"modinfo 8021q", event.FoundModule, "8021q", "", "failed to create vlan: operation not supported",
	},
	{
		"", `failed to create vlan: file exists`,
		"replace vlan with macvlan or ipvlan on the node's own VLAN interface (master eth1.200): the kernel makes one " +
			"interface per master and vlanId, which the node or another pod has",
		"ip -d -o link show type vlan", "", "", "containernetworking/plugins#243", "failed to create vlan: file exists",
	},
	{
		"", `failed to (create macvlan|set "[^"]+" address to .+): cannot assign requested address`,
		"give the pod a unicast MAC address: its first octet is even (02:00:00:00:00:01), and it is not all zeros",
		"kubectl get pod POD -o yaml", "", "", "k8snetworkplumbingwg/multus-cni#1378", "failed to create macvlan: cannot assign requested address",
	},
	{
		"", `failed to lookup master .*: [Ll]ink not found`,
		noMaster,
		"ip -br link", "", "", "containerd/nerdctl#4276", `failed to lookup master "wlan0": Link not found`,
	},
	{
		"macvlan vlan", `^[Ll]ink not found$`,
		noMaster,
		"ip -br link", "", "", "", "Link not found",
	},
	{
		"", `no default route interface found`,
		"set master in the CNI configuration: without it the plugin takes the interface of the default route, and the node has none",
		"ip route show default", "", "", "", "no default route interface found",
	},
	{
		"", `invalid VLAN ID|vlan id \d+ invalid`,
		"set the VLAN ID in the CNI configuration (vlan of bridge and sriov, vlanId of vlan) to a number from 1 to 4094",
		"grep -riE 'vlan' /etc/cni/net.d", "", "", "", "invalid VLAN ID 5000 (must be between 0 and 4094)",
	},
	{
		"", `invalid MTU .*must be .*master MTU`,
		"set mtu in the CNI configuration to no more than the master's, or raise the master's: ip link set MASTER mtu MTU",
		"ip -br link", "", "", "", "invalid MTU 9000, must be [0, master MTU(1500)]",
	},
	{
		"", `no net directory under pci device (?P<PCI>\S+)`,
		"bind device PCI to its network driver (driverctl unset-override PCI), unless a virtual machine or another pod uses it",
		"ls -l /sys/bus/pci/devices/0000:41:00.0", "", "", "", "failed to find host device: no net directory under pci device 0000:41:00.0",
	},
	{
		"host-device", `failed to find host device: ([Ll]ink not found|failed to find physical interface|no device found)`,
		"set device in the CNI configuration to an interface in the node's own namespace; an interface that another pod holds comes back when you delete that pod",
		"ip -br link", "", "", "", "failed to find host device: Link not found",
	},

	// host-local, dhcp, static, whereabouts, and refused addresses and routes.
	{
		"", `no IP ranges specified|invalid CIDR address: ?$`,
		"set the subnet or range of ipam in the CNI configuration; if an agent writes the file (kube-router), give the " +
			"node a podCIDR (--allocate-node-cidrs and --cluster-cidr of kube-controller-manager), then restart the agent",
		"kubectl get node NODE -o jsonpath='{.spec.podCIDRs}'", "", "", "k0sproject/k0s#6939", "no IP ranges specified",
	},
	{
		"", `(?i)no podCidr for node|pod cidr not assigned|\bPodCIDR not set for node`,
		"give the node a podCIDR (--allocate-node-cidrs and --cluster-cidr of kube-controller-manager, with room for " +
			"each node's --node-cidr-mask-size), which the CNI takes its addresses from (Calico: with usePodCidr)",
		"kubectl get node NODE -o jsonpath='{.spec.podCIDRs}'", "", "", "projectcalico/calico#2418", "no podCidr for node worker-1",
	},
	{
		"", `no IP addresses available in range set`,
		"run cniscope doctor: its check leaked-leases prints the command that frees stale leases; if no lease is stale, give the network a range larger than the kubelet's maxPods",
		"ls /var/lib/cni/networks/NETWORK; crictl pods -q", event.FoundLeases, "", "k3s-io/k3s#4682", "failed to allocate for range 0: no IP addresses available in range set: 10.42.2.1-10.42.2.254",
	},
	{
		"", `duplicate allocation is not allowed`,
		"delete the pod, so that its next sandbox gets an address of its own; give two networks that share name and interface different names",
		"grep -r SANDBOX /var/lib/cni/networks", "", "", "containernetworking/plugins#328", "failed to allocate for range 0: 10.88.0.9 has been allocated to b6385006e8b3eedeaa1fd60e3e69afc9fb758a27666c93708a9211b3c988ab34, duplicate allocation is not allowed",
	},
	{
		"", `requested IP address (?P<ADDRESS>\S+|‹[^›]+›) is not available in range set`,
		"run cat /var/lib/cni/networks/NETWORK/ADDRESS, which names the container that has it; delete the file only if " +
			"crictl pods --no-trunc, podman ps -a --no-trunc and, if it names NAMESPACE-ID, nerdctl -n NAMESPACE ps -a " +
			"--no-trunc lack that ID",
		"ls /var/lib/cni/networks", "", "", "podman-container-tools/podman#8403", "failed to allocate for range 0: requested IP address 172.18.24.10 is not available in range set 172.18.24.1-172.18.24.254",
	},
	{
		"", `failed to allocate all requested IPs`,
		"set the pod's requested address to one inside the network's ranges",
		"grep -r subnet /etc/cni/net.d", "", "", "", "failed to allocate all requested IPs: 10.88.0.77",
	},
	{
		"", `error dialing DHCP daemon: .*(no such file or directory|connection refused)`,
		"start the DHCP daemon on this node as a service (/opt/cni/bin/dhcp daemon); before that, run rm -f /run/cni/dhcp.sock if no daemon runs",
		"pgrep -a dhcp; ls -l /run/cni/dhcp.sock", "", "", "k8snetworkplumbingwg/multus-cni#1031", "error dialing DHCP daemon: dial unix /run/cni/dhcp.sock: connect: connection refused",
	},
	{
		"", `DHCP\.Allocate: .*(no more tries|no DHCP packet received|no matching response packet)`,
		"start a DHCP server or relay in the master's VLAN; if tcpdump -eni MASTER port 67 or port 68 shows offers, have the switch or hypervisor pass the pod's MAC address",
		"tcpdump -eni MASTER port 67 or port 68", "", "",
		"containernetworking/cni#329", "error calling DHCP.Allocate: no more tries",
	},
	{
		"", `is expected to be in CIDR notation|is NOT in CIDR notation`,
		"put the prefix length behind the address that is requested: 10.10.0.5/24",
		"kubectl get pod POD -o yaml", "", "", "", "the 'ip' field is expected to be in CIDR notation, got: '10.10.0.5'",
	},
	{
		"", `(?i)could not allocate IP in range`,
		"give the network a larger range, or remove the allocations of deleted pods: kubectl get ippools.whereabouts.cni.cncf.io -A -o yaml names the pod of each (podref)",
		"kubectl get ippools.whereabouts.cni.cncf.io -A", "", "", "k8snetworkplumbingwg/whereabouts#366", "error at storage engine: Could not allocate IP in range: ip: 192.168.205.1 / - 192.168.205.254 / range: 192.168.205.0/24",
	},
	{
		"", `time limit exceeded while waiting to become leader`,
		"upgrade whereabouts, or start fewer pods at once: each of its ADDs waits for one lease (kubectl -n " +
			"kube-system get lease whereabouts)",
		"kubectl -n kube-system get lease whereabouts", "", "", "", "error at storage engine: time limit exceeded " +
			"while waiting to become leader",
	},
	{
		"", `address .* in DADFAILED state`,
		"give the network a range of addresses that no other host on that segment uses: another host answered for this address",
		"ip -6 neigh show", "", "", "", "link eth0 has address fd00::9 in DADFAILED state",
	},
	{
		"", `failed to add route .*: network is unreachable`,
		"set the route's gateway (gw in ipam) to an address inside the pod's subnet",
		`grep -r '"gw"' /etc/cni/net.d`, "", "",
		"", "failed to add route '0.0.0.0/0 via 10.88.0.1 dev eth0': network is unreachable",
	},
	{
		"", `failed to add IP addr .*: file exists`,
		"take the address out of all but one plugin and network of the pod, whose interface has it already; delete the " +
			"pod if an earlier ADD was cut short (kubectl delete pod)",
		"ip netns exec NETNS ip address", "", "", "rancher/rancher#6401", `failed to add IP addr to "eth0": file exists`,
	},
	{
		"", `(host side routes .*failed to add route|failed to add (host route|route on host|pod rule)).*\bfile exists`,
		"delete the node's routes and rules (ip route, ip rule) for addresses whose pod is gone, which fail the next pod " +
			"that gets the address; then upgrade the CNI, whose DEL left them",
		"ip route; ip rule", "", "", "aws/amazon-vpc-cni-k8s#344",
		"add command: failed to setup network: setup NS network: failed to add host route: file exists",
	},
	{
		"", `failed to add (default )?route\b.*: file exists`,
		"take the route out of one of the pod's networks: two networks add the same route, often 0.0.0.0/0",
		`grep -r '"dst"' /etc/cni/net.d`, "", "", "", "failed to add route '0.0.0.0/0 via 10.88.0.1 dev net1': file exists",
	},

	// portmap, firewall, tuning, sbr, bandwidth, vrf, and their packet filter tools.
	{
		"", `\bdel(ete)? rule\b.* table (?P<TABLE>\d+): no such file or directory`,
		"run ip rule add to ADDRESS table TABLE with the pod's address (kubectl get pod -o wide), so that the next " +
			"DEL finds its rule; upgrade the plugin, whose DEL must not fail if the rule is gone",
		"ip rule show", "", "", "spidernet-io/cni-plugins#47", "failed to del rule table 500: no such file or directory",
	},
	{
		"", `"ip6?tables": executable file not found`,
		"install iptables on the node, into a directory of the container runtime's PATH (systemctl show -p Environment containerd)",
		"command -v iptables", "", "", "danm-cni/danm#66", `failed to locate iptables: exec: "iptables": executable file not found in $PATH`,
	},
	{
		"", `"nft": executable file not found`,
		"install nftables on the node, into a directory of the container runtime's PATH (systemctl show -p Environment containerd)",
		"command -v nft", "", "", "siderolabs/extensions#826", `could not find nftables binary: exec: "nft": executable file not found in $PATH`,
	},
	{
		"", `exec: \\?"(?P<PROGRAM>[\w.-]+)\\?": executable file not found`,
		"install PROGRAM where the program that reports it runs: for a plugin on the node, into a directory of the " +
			"container runtime's PATH (systemctl show -p Environment containerd); for an agent into its image",
		"command -v PROGRAM", "", "", "linkerd/linkerd2#7945", `exec: "nsenter": executable file not found in $PATH`,
	},
	{
		"", `can't initialize (?P<FAMILY>ip6?)tables table .(?P<TABLE>\w+).: Table does not exist`,
		"load the module of the legacy table: modprobe iptable_TABLE (ip6table_TABLE for ip6tables); list it in /etc/modules-load.d; where the kernel has none, install iptables-nft",
		"modinfo FAMILYtable_TABLE; iptables --version", event.FoundModule, "FAMILYtable_TABLE", "docker-library/docker#350", "unable to create chain CNI-HOSTPORT-SETMARK: failed to list chains: running [/sbin/iptables -t nat -S --wait]: exit status 3: iptables v1.8.7 (legacy): can't initialize iptables table `nat': Table does not exist (do you need to insmod?)",
	},
	{
		"", `Failed to initialize nft: Protocol not supported|Could not fetch rule set generation id: Invalid argument`,
		"load the modules: modprobe -a nf_tables nft_compat; reboot if an upgrade removed the modules of the running " +
			"kernel; where the kernel has none, have the program that reports it use iptables-legacy",
		"modinfo nf_tables; iptables --version", event.FoundModule, "nf_tables nft_compat", "linkerd/linkerd2#9053",
		"iptables-nft-save v1.8.7 (nf_tables): Could not fetch rule set generation id: Invalid argument",
	},
	{
		"", `(Chain|target) .KUBE-MARK-MASQ.(:| does)`,
		"remove externalSetMarkChain from portmap's configuration, or upgrade CRI-O, so that they mark packets " +
			"themselves: since Kubernetes 1.27 only kube-proxy makes the chain KUBE-MARK-MASQ",
		"grep -r externalSetMarkChain /etc/cni/net.d", "", "", "cilium/cilium#30666",
		"exit status 2 (iptables-restore v1.8.9 (nf_tables): Chain 'KUBE-MARK-MASQ' does not exist",
	},
	{
		"", `table .(?P<TABLE>\w+). is incompatible, use 'nft' tool`,
		"move the rules that nft itself wrote out of table ip TABLE into a table of another name; nft list table ip TABLE shows them",
		"nft list tables", "", "", "podman-container-tools/podman#5446", "failed to list chains: running [/usr/sbin/iptables -t nat -S --wait]: exit status 1: iptables v1.8.4 (nf_tables): table `nat' is incompatible, use 'nft' tool.",
	},
	{
		"", `-j MARK .*unknown option`,
		"load the module: modprobe xt_mark; a kernel of your own needs CONFIG_NETFILTER_XT_MARK",
		"modinfo xt_mark", event.FoundModule, "xt_mark", "gokrazy/kernel#426", "running [/usr/sbin/iptables -t nat -C " +
			"CNI-HOSTPORT-SETMARK -j MARK --set-xmark 0x2000/0x2000 --wait]: exit status 2: iptables v1.8.7 (nf_tables): " +
			`unknown option "--set-xmark"`,
	},
	{
		"", `Extension (?P<EXTENSION>(CONN)?MARK|[DS]NAT|REJECT|TTL|TOS|tcp|udp|rpfilter|ttl|tos|‹[^›]+›) revision .* not supported, missing`,
		"load the module: modprobe ipt_EXTENSION (ip6t_EXTENSION for ip6tables), which may be an alias; " +
			"install kernel-modules-extra on Fedora and RHEL; reboot if an upgrade removed the modules of the running kernel",
		"modinfo ipt_EXTENSION; ls /lib/modules/$(uname -r)", "", "", "jamesmcm/vopono#297",
		"Warning: Extension MARK revision 0 not supported, missing kernel module?",
	},
	{
		"", `Extension (?P<EXTENSION>\w+) revision .* not supported, missing kernel module`,
		"load the module: modprobe xt_EXTENSION, which Fedora and RHEL have in kernel-modules-extra; reboot if an upgrade removed the modules of the running kernel",
		"modinfo xt_EXTENSION; ls /lib/modules/$(uname -r)", event.FoundModule, "xt_EXTENSION", "containerd/containerd#12953", "running [/usr/sbin/iptables -t nat -A CNI-DN-1 -m comment --wait]: exit status 4: Warning: Extension comment revision 0 not supported, missing kernel module?",
	},
	{
		"", `refused NFT_MSG_\w+ \((EINVAL|ENOENT|EOPNOTSUPP)\)`,
		"run that command by hand in the same network namespace: nft has no lock, so the kernel refused the rule (a missing module, chain or option)",
		"lsmod; iptables --version", "", "", "microsoft/WSL#11884", ", because the kernel refused NFT_MSG_NEWRULE (EINVAL)",
	},
	{
		"", `unable to set up nftables rules .*Could not process rule: Operation not supported`,
		"upgrade portmap in the CNI bin directory, or set backend to iptables in its configuration: release 1.6.0 makes " +
			"a rule that kernels refuse",
		"nft --version", "", "", "containernetworking/plugins#1115", "unable to set up nftables rules for port " +
			"mappings: /dev/stdin:13:1-182: Error: Could not process rule: Operation not supported",
	},
	{
		"", `can't open lock file .*: Is a directory`,
		"run rmdir on the path that the message names, and mount it into pods with hostPath type FileOrCreate: a " +
			"pod that mounts it before it exists makes a directory",
		"ls -ld /run/xtables.lock", "", "", "siderolabs/talos#2251", "running [iptables -w 5 -t filter -S]: exit " +
			"status 4: Fatal: can't open lock file /run/xtables.lock: Is a directory",
	},
	{
		"", `exit status 4: .*Resource temporarily unavailable`,
		"mount the node's /run/xtables.lock into each pod that runs iptables-legacy: one changed the table while " +
			"this command did, under a lock file of its own",
		"crictl pods; iptables --version", "", "", "kubernetes-sigs/kubespray#3192", "failed to check rule " +
			"existence: running [/sbin/iptables -t nat -C POSTROUTING --wait]: exit status 4: iptables: Resource " +
			"temporarily unavailable.",
	},
	{
		"", `currently holding the xtables lock`,
		"shorten what the holder of /run/xtables.lock does (fuser -v /run/xtables.lock names it): run kube-proxy in mode nftables or raise its minSyncPeriod",
		"fuser -v /run/xtables.lock", "", "", "istio/istio#58507", "running [/usr/sbin/iptables -t nat -C POSTROUTING --wait]: exit status 4: Another app is currently holding the xtables lock; still 4s 0us time ahead to have a chance to grab the lock...",
	},
	{
		"", `Could not fetch rule set generation id: Permission denied|Permission denied \(you must be root\)|refused ` +
			`(RTM|NFT_MSG)_\w+ \(EPERM\)|failed to (create (bridge|\w*vlan|dummy)|make veth pair)\b.*: operation not permitted`,
		"give the container runtime CAP_NET_ADMIN in the node's network namespace: run it as root, without a CapabilityBoundingSet that lacks it",
		"systemctl show -p CapabilityBoundingSet -p User containerd", "", "", "", "failed to list chains: running [/usr/sbin/iptables -t nat -S --wait]: exit status 1: iptables v1.8.9 (nf_tables): Could not fetch rule set generation id: Permission denied (you must be root)",
	},
	{
		"", `/proc/sys/.*: read-only file system|route_localnet: open .*: read-only file system`,
		"mount /proc/sys writable for the container runtime (mount -o remount,rw /proc/sys); a node that is a container has to be privileged",
		"findmnt -T /proc/sys", "", "", "", "unable to enable route_localnet: open /proc/sys/net/ipv4/conf/cni0/route_localnet: read-only file system",
	},
	{
		"", `failed to add the address (?P<ADDRESS>\S+|‹[^›]+›) to .* zone: .*(ZONE_CONFLICT|already bound)`,
		"run firewall-cmd --get-zone-of-source=ADDRESS, then, with the zone that it names, firewall-cmd --zone=ZONE --remove-source=ADDRESS",
		"firewall-cmd --get-active-zones", "", "", "", "failed to add the address 10.88.0.9/32 to trusted zone: ZONE_CONFLICT: '10.88.0.9/32' already bound to 'public'",
	},
	{
		"", `failed to add the address .* zone: .*INVALID_ZONE`,
		"set firewalldZone in the CNI configuration to a zone that firewall-cmd --get-zones lists",
		"firewall-cmd --get-zones", "", "", "", "failed to add the address 10.88.0.9/32 to pods zone: INVALID_ZONE: pods",
	},
	{
		"", `Sysctl (?P<SYSCTL>\S+|‹[^›]+›) is not allowed\. Only the following`,
		"add the line ^SYSCTL$ to /etc/cni/tuning/allowlist.conf on each node, if pods may set it",
		"cat /etc/cni/tuning/allowlist.conf", "", "", "", "Sysctl net.core.somaxconn is not allowed. Only the following sysctls are allowed: [^net.ipv4.conf.IFNAME.[a-z_]*$]",
	},
	{
		"tuning", `open /proc/sys/.*: no such file or directory`,
		"take the sysctl out of the tuning configuration, or load the module that has it: a pod has only the sysctls of its own network namespace",
		"ip netns exec NETNS sysctl -a", "", "",
		"", "open /proc/sys/net/netfilter/nf_conntrack_max: no such file or directory",
	},
	{
		"tuning", `write /proc/sys/net/[^:]+: invalid argument`,
		"set the sysctl that the message names to a value that the kernel takes, in the tuning configuration: its " +
			"value is no number or out of range",
		"grep -r sysctl /etc/cni/net.d", "", "", "", "write /proc/sys/net/ipv4/tcp_ecn: invalid argument",
	},
	{
		"", `invalid net sysctl key`,
		"move this sysctl to securityContext.sysctls of the pod: tuning sets those below net. only",
		"grep -r sysctl /etc/cni/net.d", "", "", "", `invalid net sysctl key: "kernel.shmmax"`,
	},
	{
		"", `must be called as (a )?chained plugin|[Mm]issing prevResult from earlier plugin|Required prevResult missing|interface name missing in prevResult`,
		"put this plugin behind one that makes the interface (bridge, ptp, macvlan), in the plugins list of a .conflist; alone or first it has no prevResult",
		"ls /etc/cni/net.d", "", "", "", "must be called as chained plugin",
	},
	{
		"sbr", `No IP addresses supplied on interface`,
		"put sbr behind a plugin with ipam in the plugins list: its interface needs an address",
		"ls /etc/cni/net.d", "", "", "", "No IP addresses supplied on interface: net1",
	},
	{
		"", `if (rate is set, burst|burst is set, rate) must also be set`,
		"set rate and burst of a direction together in the bandwidth configuration (ingressRate and ingressBurst, egressRate and egressBurst)",
		"grep -rE 'Rate|Burst' /etc/cni/net.d", "", "", "", "if rate is set, burst must also be set",
	},
	{
		"", `burst cannot be more than`,
		"set ingressBurst and egressBurst below 34359738360 bits, which is 4 GB",
		"grep -rE 'Burst' /etc/cni/net.d", "", "", "", "burst cannot be more than 4GB",
	},
	{
		"bandwidth", `has no veth peer|veth peer .* is not in host ns|no veth peer of container interface`,
		"take bandwidth out of this network's plugins list: it limits veth pairs (bridge, ptp), not macvlan, ipvlan or SR-IOV",
		"grep -rl bandwidth /etc/cni/net.d", "", "", "", `container interface net1 has no veth peer: interface "net1" was not a veth interface`,
	},
	{
		"bandwidth", `(adding link|create ingress qdisc|create qdisc|create ifb qdisc|add filter): (operation not supported|no such file or directory)`,
		"load the modules: modprobe -a ifb sch_tbf sch_ingress cls_u32 act_mirred; list them in /etc/modules-load.d",
		"modinfo ifb sch_tbf sch_ingress", event.FoundModule, "ifb sch_tbf sch_ingress", "", "adding link: operation not supported",
	},
	{
		"bandwidth", `create (ingress |ifb )?qdisc: file exists`,
		"have the program that adds qdiscs to pod interfaces (a monitoring agent) use clsact or skip them, then delete the pod; tc qdisc show lists the qdiscs",
		"tc qdisc show", "", "", "containernetworking/plugins#894", "create ingress qdisc: file exists",
	},
	{
		"", `interface (?P<INTERFACE>\S+|‹[^›]+›) has already a master set`,
		"take the interface out of its other master, because a port of a bridge or of another VRF cannot join this VRF",
		"ip netns exec NETNS ip -d link", "", "", "", "cmdAdd failed: interface net1 has already a master set: blue",
	},
	{
		"", `could not add VRF .*: operation not supported`,
		"load the module: modprobe vrf; reboot if an upgrade removed the modules of the running kernel",
		"modinfo vrf", event.FoundModule, "vrf", "", "cmdAdd failed: could not add VRF blue: operation not supported",
	},
	{
		"", `VRF .* already exist with different routing table`,
		"set the same table for this vrfname in every network of the pod",
		"grep -r vrfname /etc/cni/net.d", "", "", "", "VRF blue already exist with different routing table 10",
	},

	// Any CNI call.
	{
		"", `^(netplugin failed: ")?panic: |^runtime error: |CNI panicked during `,
		"upgrade the plugin, or return to its previous version: journalctl -u containerd has the stack, which its maker needs",
		"journalctl -u containerd", "", "", "Azure/azure-container-networking#176",
		"panic: runtime error: invalid memory address or nil pointer dereference",
	},
	{
		"", `^killed by SIG(ILL|SEGV|BUS)$`,
		"replace the program with that of a release for this CPU (lscpu), and compare their checksums: it is " +
			"damaged, or uses instructions that the CPU lacks",
		"sha256sum /opt/cni/bin/*; lscpu", "", "", "", "killed by SIGILL",
	},
	{
		"", `exit status 127$`,
		"install the program or library that the plugin's log names: exit status 127 says that a shell, nsenter or the " +
			"dynamic loader did not find it",
		"journalctl -u containerd", "", "", "linkerd/linkerd2#14538", "exit status 127",
	},
	{
		"", `ARGS: unknown args`,
		"set IgnoreUnknown=1 in CNI_ARGS, in the runtime or plugin that called this plugin (container runtimes do)",
		"ls /etc/cni/net.d", "", "", "cni-genie/CNI-Genie#93",
		`ARGS: unknown args ["K8S_POD_NAMESPACE=shop" "K8S_POD_NAME=web"]`,
	},
	{
		"", `invalid version "": the version is empty`,
		"set cniVersion in the CNI configuration, which lacks it: the runtime's CNI library then fails each DEL",
		"grep -rL cniVersion /etc/cni/net.d", "", "", "kubernetes/website#34204", `invalid version "": the version is empty`,
	},
	{
		"", `incompatible CNI versions|unsupported CNI result version|plugin \S+ does not support config version`,
		"upgrade the plugin or runtime that reports this, or set cniVersion of the CNI configuration to a " +
			"version that it supports",
		"grep -r cniVersion /etc/cni/net.d", "", "", "containernetworking/plugins#690", `incompatible CNI versions; config is "1.0.0", plugin supports ["0.1.0" "0.2.0" "0.3.0" "0.3.1" "0.4.0"]`,
	},
	{
		"", `configuration version .+ does not support the CHECK command`,
		"set cniVersion of Multus' configuration to that of the network that the message names, or of that network to 0.4.0 " +
			"or later: CRI-O calls CHECK from 0.4.0 on",
		"grep -r cniVersion /etc/cni/net.d", "", "", "k8snetworkplumbingwg/multus-cni#525", "conflistCheck: error in " +
			`getting result from CheckNetworkList: configuration version "0.3.0" does not support the CHECK command`,
	},
	{
		"", `failed to get network .* cached result: .*(unexpected end of JSON input|invalid character)`,
		"remove the files that grep -raL '}$' /var/lib/cni/results lists: an interrupted ADD left them empty or cut " +
			"off, and they fail every DEL of their sandboxes",
		"grep -raL '}$' /var/lib/cni/results", "", "", "containerd/containerd#8197", `failed to get network "pods" ` +
			`cached result: decoding version from network config: unexpected end of JSON input`,
	},
	{
		"flannel multus multus-shim", `(^|type="flannel"[^:]*: |DelNetwork\w*: )failed to parse netconf: (unexpected end of ` +
			`JSON input|invalid character)`,
		"remove the files that grep -raL '}$' /var/lib/cni/flannel lists: an interrupted ADD left them empty or cut " +
			"off, and they fail every DEL of their sandboxes",
		"grep -raL '}$' /var/lib/cni/flannel", "", "", "flannel-io/flannel#1662", "failed to parse netconf: " +
			"unexpected end of JSON input",
	},
	{
		"", `Network Attachment Selection Annotation JSON format|failed to unmarshal Spec\.Config`,
		"fix the JSON of spec.config of the NetworkAttachmentDefinition if the message says Spec.Config; otherwise that of " +
			"the pod's annotation k8s.v1.cni.cncf.io/networks",
		"kubectl get network-attachment-definitions -A -o yaml", "", "", "kubevirt/macvtap-cni#57", "GetCNIConfig: err in " +
			`getCNIConfigFromSpec: failed to unmarshal Spec.Config: invalid character '"' after object key:value pair`,
	},
	{
		"", `(parsing|parse|load|unmarshal|decod)\w* \S*(netconf|conf|config|configuration)\b.*(invalid ` +
			`character|unexpected end of JSON input)`,
		"run jq . FILE, which names the line, and fix the JSON of the CNI configuration",
		"jq . /etc/cni/net.d/*.conflist", "", "", "", "failed to load netconf: invalid character '}' looking for " +
			"beginning of object key string",
	},
	{
		"", `cannot unmarshal \w+ into Go struct field \S+?\.(?P<OPTION>[\w.]+) of type`,
		"set the option OPTION of the CNI configuration to a value of the type that the message names last",
		"grep -r OPTION /etc/cni/net.d", "", "", "tigera/operator#3088", "failed to load netconf: json: cannot unmarshal array into Go struct field TuningConf.sysctl of type map[string]string",
	},
	{
		"", `failed to find plugin \\?"(?P<PLUGIN>flannel|calico|calico-ipam|cilium-cni|antrea|aws-cni|weave-net|terway)\\?" in path`,
		"start this CNI's agent on the node (restart it if it runs), which installs PLUGIN; if it installs " +
			"it in another directory than those that the message names, correct its host directory or the " +
			"runtime's CNI bin directory",
		"ls -l /opt/cni/bin", "", "", "cilium/cilium#11497", `failed to find plugin "cilium-cni" in path [/home/kubernetes/bin]`,
	},
	{
		"", `(failed to find|needs CNI) plugin \\?"(?P<PLUGIN>[^"\\]+)\\?" (in path|to be installed in)`,
		"put PLUGIN into the CNI bin directory that the message names, executable; the reference plugins are in cni-plugins-linux-ARCH.tgz of containernetworking/plugins",
		"ls -l /opt/cni/bin", "", "", "k8snetworkplumbingwg/multus-cni#1413", `plugin type="macvlan" failed (add): failed to find plugin "macvlan" in path [/opt/cni/bin]`,
	},
	{
		"", `unknown FS magic on`,
		"mount the path's directory with mountPropagation HostToContainer into the agent's container, and restart it, if an " +
			"agent reports this; otherwise delete the pod if findmnt -t nsfs lacks the path: the namespace was unmounted",
		"findmnt -t nsfs", "", "", "containernetworking/plugins#69", `failed to open netns "/var/run/netns/cni-2739c4ea-53b0-b820-12c8-cef6ac666ee2": unknown FS magic on "/var/run/netns/cni-2739c4ea-53b0-b820-12c8-cef6ac666ee2": 1021994`,
	},
	{
		"", `failed to Statfs "?/host/\S*/netns/.*: no such file or directory`,
		"mount the node's /run/netns into the agent's container, at the path that the message names, with " +
			"mountPropagation HostToContainer, then restart that pod; if it is mounted so, the sandbox had ended before",
		"findmnt -t nsfs", "", "", "antrea-io/antrea#3", `failed to Statfs ` +
			`"/host/var/run/netns/cni-2739c4ea-53b0-b820-12c8-cef6ac666ee2": no such file or directory`,
	},
	{
		"", `(failed to Statfs|opening netns pinned at) .*: no such file or directory`,
		"read the runtime's log of this sandbox (journalctl -u containerd or crio): its process ended, or it was removed, " +
			"before the plugin opened its namespace; upgrade Cilium if its DEL reports this",
		"crictl pods; dmesg", "", "", "antrea-io/antrea#831", `failed to open netns "/proc/12764/ns/net": failed to Statfs "/proc/12764/ns/net": no such file or directory`,
	},
	{
		"", `refused RTM_NEWLINK \(EOPNOTSUPP\)`,
		"load the module of the interface that the plugin makes: modprobe veth, bridge, macvlan, ipvlan, 8021q, vrf or ifb; reboot if an upgrade removed the modules of the running kernel",
		"ls /lib/modules/$(uname -r)", "", "", "containernetworking/plugins#370", ", because the kernel refused RTM_NEWLINK (EOPNOTSUPP)",
	},

	// Webhooks, proxies, agents, etcd.
	{
		"", `failed calling webhook \\?"(?P<WEBHOOK>[^"\\]*)\\?"`,
		"fix the webhook WEBHOOK, which the API server asks: its pods, Service and caBundle; if its pods wait for " +
			"this network, set its failurePolicy to Ignore until they run",
		"kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o yaml", "", "",
		"projectcapsule/capsule#787", `Internal error occurred: failed calling webhook ` +
			`"nodes.capsule.clastix.io": failed to call webhook: no endpoints available for service ` +
			`"capsule-webhook-service"`,
	},
	{
		"", `admission webhook \\?"(?P<WEBHOOK>[^"\\]+)\\?" denied the request`,
		"set the policy of the webhook WEBHOOK to allow what the CNI writes: the message names the rule that denied it",
		"kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o yaml", "", "",
		"aws/amazon-vpc-cni-k8s#2814", `admission webhook "validate.kyverno.svc-fail" denied the request: ` +
			`resource Pod was blocked due to the following policies`,
	},
	{
		"", `proxyconnect tcp: |https://([^" ]|‹[^›]+›)*"?: (Forbidden|Service Unavailable|Bad Gateway|Gateway Timeout|` +
			`Proxy Authentication Required|Tunnel Connection Failed)\b`,
		"take HTTPS_PROXY out of the container runtime's environment (systemctl show -p Environment containerd), " +
			"or add the address that the message names first to NO_PROXY: the plugin asked the proxy",
		"systemctl show -p Environment containerd", "", "", "projectcalico/calico#6311",
		`error getting ClusterInformation: Get ` +
			`"https://10.96.0.1:443/apis/crd.projectcalico.org/v1/clusterinformations/default": proxyconnect tcp: ` +
			`dial tcp 10.1.2.3:3128: connect: connection refused`,
	},
	{
		"", `https://([^"]*/(apis?/|version|openapi)[^"]*|\[‹[^›]+›\]:‹[^›]+›)"?: .*TLS handshake timeout`,
		"add the API server's address to NO_PROXY if the container runtime has HTTPS_PROXY set (systemctl show -p " +
			"Environment containerd); otherwise run kubectl get --raw '/readyz?verbose' and fix what fails there",
		"systemctl show -p Environment containerd", "", "", "projectcalico/calico#6311",
		`error getting ClusterInformation: Get ` +
			`"https://10.96.0.1:443/apis/crd.projectcalico.org/v1/clusterinformations/default": net/http: TLS ` +
			`handshake timeout`,
	},
	{
		"", `(Post|Get|Put|Delete) "?http://(dummy|localhost|unix)/[^"]*"?: EOF(: StdinData: |$)`,
		"read the log of the agent that the plugin asks, of that time (kubectl logs, with --previous if it restarted): it " +
			"closed the connection without an answer, as it does after a panic or when it ends",
		"crictl ps -a", "", "", "kubeovn/kube-ovn#6002", `RPC failed; Post "http://dummy/api/v1/add": EOF`,
	},
	{
		"", `client rate limiter Wait returned an error`,
		"start fewer pods at once, or raise the request limit (QPS) of the program that reports it: it held its " +
			"request back, unless a slow API server had used up its time (kubectl get --raw '/readyz?verbose')",
		"kubectl get --raw '/readyz?verbose'", "", "", "k8snetworkplumbingwg/whereabouts#395",
		"error at storage engine: k8s get error: client rate limiter Wait returned an error: context deadline " +
			"exceeded",
	},
	{
		"", `: database space exceeded`,
		"run etcdctl compact, etcdctl defrag and etcdctl alarm disarm, in this order; raise --quota-backend-bytes " +
			"of etcd if its data needs it",
		"etcdctl endpoint status -w table; etcdctl alarm list", "", "", "cilium/cilium#1172",
		"etcdserver: mvcc: database space exceeded",
	},

	// API servers.
	{
		"", askedServer + `dial tcp .*: connect: (no route to host|network is unreachable)`,
		"add the route that ip route get shows to be missing, or have the API server's node accept the port: a " +
			"firewall that rejects (firewalld, nft list ruleset) says no route to host, too",
		"ip route get 10.96.0.1; nft list ruleset", "", "", "",
		`Get "https://10.96.0.1:443/api/v1/namespaces/shop/pods/web-7f9c6-x2b4n": dial tcp 10.96.0.1:443: ` +
			`connect: no route to host`,
	},
	{
		"", askedServer + `dial tcp .*: (connect: connection refused|i/o timeout)`,
		"start the API server again; for a Service address, start kube-proxy or its replacement on this node",
		"kubectl get --raw /readyz; crictl ps --name kube-proxy", "", "", "", `error getting ClusterInformation: Get "https://10.96.0.1:443/apis/crd.projectcalico.org/v1/clusterinformations/default": dial tcp 10.96.0.1:443: connect: connection refused`,
	},
	{
		"", askedServer + `(context deadline exceeded|net/http: request canceled)`,
		"run kubectl get --raw '/readyz?verbose' on this node and fix what fails; if nothing fails, measure packet loss between this node and the API server (ping)",
		"kubectl get --raw '/readyz?verbose'", "", "", "k8snetworkplumbingwg/multus-cni#1461", `Multus: [shop/web-7f9c6-x2b4n]: error waiting for pod: Get "https://10.96.0.1:443/api/v1/namespaces/shop/pods/web-7f9c6-x2b4n?timeout=1m0s": context deadline exceeded`,
	},
	{
		"", `the server could not find the requested resource`,
		"apply the CustomResourceDefinitions of this CNI's installed version (kubectl get crd lists them); upgrade the CNI " +
			"if this Kubernetes no longer serves the API version that it asks for (kubectl api-versions)",
		"kubectl get crd; kubectl api-versions", "", "", "k8snetworkplumbingwg/multus-cni#302",
		"failed to get network resource: the server could not find the requested resource",
	},
	{
		"", `unable to return a response in the time allotted|currently unable to handle the request|etcdserver: ` +
			`(request timed out|leader changed|no leader)`,
		"run kubectl get --raw '/readyz?verbose' and fix what fails there: the API server or its etcd is " +
			"overloaded (etcdctl endpoint status, the disk of etcd)",
		"kubectl get --raw '/readyz?verbose'", "", "", "kubernetes/kubernetes#122938", "the server was unable to " +
			"return a response in the time allotted, but may still be processing the request (get namespaces shop)",
	},
	{
		"", askedServer + `.*certificate signed by unknown authority`,
		"restart the CNI's pod on this node, so that it writes its kubeconfig in /etc/cni/net.d again with the CA of this cluster",
		"ls -l /etc/cni/net.d", "", "", "", `error getting ClusterInformation: Get "https://10.96.0.1:443/apis/crd.projectcalico.org/v1/clusterinformations/default": x509: certificate signed by unknown authority`,
	},
	{
		"", askedServer + `.*certificate( is valid for .*, not |.*because it doesn't contain any IP SANs)`,
		"add the address that the message names to the API server's certificate, if openssl s_client shows it (kubeadm " +
			"keeps an old apiserver.crt: move it away first); otherwise another host answers there: fix kube-proxy or the route",
		"openssl s_client -connect 10.96.0.1:443 </dev/null", "", "", "k0sproject/k0sctl#469", `Get ` +
			`"https://10.152.184.1:443/api/v1/nodes/a": x509: certificate is valid for 10.2.0.20, 10.96.0.1, not 10.152.184.1`,
	},
	{
		"", askedServer + `.*certificate has expired or is not yet valid`,
		"set the node's clock if timedatectl shows a wrong time; otherwise renew the API server's certificates (kubeadm certs renew all, on each control plane node)",
		"timedatectl; kubeadm certs check-expiration", "", "", "", `Get "https://10.96.0.1:443/api/v1/nodes/worker-1": x509: certificate has expired or is not yet valid: current time 2024-01-02T15:04:05Z is after 2023-12-31T00:00:00Z`,
	},
	{
		"", `pods "?[^" ]+"? not found`,
		"run kubectl get pod: if the pod was deleted, nothing is wrong; if it exists, restart the CNI's pod on " +
			"this node, whose kubeconfig is another cluster's",
		"kubectl get pods -A; ls -l /etc/cni/net.d", "", "", "", `error getting pod: pods "web-7f9c6-x2b4n" not found`,
	},
	{
		"", `is forbidden: User "?system:serviceaccount:`,
		"apply the manifest of the installed version of this CNI again: its ClusterRole lacks what the message names",
		"kubectl auth can-i --list --as=system:serviceaccount:NAMESPACE:NAME", "", "", "", `pods "web-7f9c6-x2b4n" is forbidden: User "system:serviceaccount:kube-system:multus" cannot get resource "pods" in API group "" in the namespace "shop"`,
	},
	{
		"istio-cni", `\bUnauthorized$`,
		"restart istio-cni-node on this node, which writes a new token to its kubeconfig: kubectl delete pod -A " +
			"-l k8s-app=istio-cni-node --field-selector spec.nodeName=NODE",
		"kubectl auth whoami --kubeconfig /etc/cni/net.d/ZZZ-istio-cni-kubeconfig", "", "", "istio/istio#54303",
		"Unauthorized",
	},
	{
		"linkerd-cni", `\bUnauthorized$`,
		"take linkerd-cni out of the CNI configuration, then run kubectl delete pod -A -l k8s-app=linkerd-cni " +
			"--field-selector spec.nodeName=NODE; the next pod, which starts only then, adds it with a new token",
		"kubectl auth whoami --kubeconfig /etc/cni/net.d/ZZZ-linkerd-cni-kubeconfig", "", "", "linkerd/linkerd2#12573",
		"Unauthorized",
	},
	{
		"whereabouts", `\bUnauthorized$`,
		"restart whereabouts on this node, which writes a new token to its kubeconfig: kubectl delete pod -A -l " +
			"app=whereabouts --field-selector spec.nodeName=NODE",
		"kubectl auth whoami --kubeconfig /etc/cni/net.d/whereabouts.d/whereabouts.kubeconfig", "", "", "",
		"error at storage engine: k8s get error: Unauthorized",
	},

	// Bursts of pods.
	{
		"", `\bsignal: killed\b`,
		"run journalctl -k -g 'Killed process' on the node; if it names the command, raise the memory limit of the pod " +
			"that ran it, or start fewer pods at once; otherwise its caller killed it, usually after a timeout",
		"journalctl -k -g 'Killed process'", "", "", "kubeovn/kube-ovn#3210", "configure nic failed add nic to ovs " +
			"failed signal: killed",
	},
	{
		"", `(\bexec\b|\bsh:) .*[Aa]rgument list too long`,
		"shorten CNI_ARGS, or the longest variable of the environment of the runtime or agent: the kernel starts a " +
			"program only if each variable has less than 128 KiB, and all fit into a quarter of the stack (ulimit -s)",
		"tr '\\0' '\\n' < /proc/$(pgrep -xo containerd)/environ | awk '{print length, $1}' | sort -n | tail", "", "",
		"kubernetes-sigs/kind#2167", "fork/exec /opt/cni/bin/loopback: argument list too long",
	},
	{
		"", `unable to list interfaces: timed out waiting for the condition|results may be incomplete or inconsistent|` +
			`^([^/]*(?i:link|interface|route|addr|list|look|find)[^/]*: )?interrupted system call$`,
		"delete the pod if the kubelet does not retry (kubectl delete pod); start fewer pods at once, and update the " +
			"plugin: interfaces came and went while it listed them, so the kernel marked each list as interrupted",
		"ip monitor link", "", "", "cilium/cilium#48718", "unable to find ifindex for interface MAC: unable to list " +
			"interfaces: timed out waiting for the condition",
	},

	// Nodes.
	{
		"", `open (\S*/)?(?P<PROGRAM>[^/\s:]+): text file busy`,
		"run pgrep -a PROGRAM on the node, and kill the processes that hang: a program cannot be overwritten while it " +
			"runs",
		"fuser -v /opt/cni/bin/PROGRAM", "", "", "projectcalico/calico#8932", "open " +
			"/host/opt/cni/bin/portmap: text file busy",
	},
	{
		"", `((inotify|fsnotify)\w*[^:]*|\bwatch(er|ing)? [^:]*|\bwatcher): no space left on device`,
		"raise fs.inotify.max_user_watches (sysctl fs.inotify shows it, sysctl -w sets it), in /etc/sysctl.d, too: the " +
			"file watches of the user are used up, no disk is full",
		"sysctl fs.inotify", "", "", "google/cadvisor#1581", "failed to watch: inotify_add_watch /etc/cni/net.d: " +
			"no space left on device",
	},
	{
		"", `mkdir /sys/fs/cgroup/.*: no space left on device`,
		"delete pods and stop services (systemd-cgls lists them), or reboot: the kernel has no room for another " +
			"cgroup, and may keep those that were removed",
		"cat /proc/cgroups; grep . /sys/fs/cgroup/cgroup.stat", "", "", "moby/moby#29638",
		"mkdir /sys/fs/cgroup/memory/system.slice: no space left on device",
	},
	{
		"", `(open|write|mkdir|create) /([^ps]|p[^r]|pr[^o]|s[^y]|sy[^s]|sys[^/]).*: no space left on device`,
		"free space or inodes on the file system of the file that the message names (df -h, df -i)",
		"df -h /var/lib/cni; df -i /var/lib/cni", "", "", "", "failed to allocate for range 0: write /var/lib/cni/networks/k8s-pod-network/10.88.0.9: no space left on device",
	},
	{
		"", `(open|write|mkdir|create|remove) /(var|run|etc|opt)/.*: read-only file system`,
		"mount the file system of the file writable (findmnt -T FILE, then mount -o remount,rw) " +
			"once dmesg shows no disk error; host-local's dataDir can be elsewhere",
		"findmnt -T /var/lib/cni; dmesg", "", "", "", "mkdir /var/lib/cni/networks: read-only file system",
	},
	{
		"", `(open|write|mkdir|create|remove) /var/lib/.*: permission denied`,
		"run restorecon -R on the directory that the message names if ausearch -m avc shows that SELinux refused " +
			"it; else give it back to root (ls -ld, chattr -i)",
		"ausearch -m avc -ts recent; ls -ldZ /var/lib/cni/networks", "", "", "", "failed to allocate for range 0: " +
			"open /var/lib/cni/networks/pods/last_reserved_ip.0: permission denied",
	},
	{
		"", `(fsnotify|inotify).*: too many open files`,
		"run sysctl -w fs.inotify.max_user_instances=8192 and set it in /etc/sysctl.d, too",
		"sysctl fs.inotify", "", "", "berops/claudie#1694",
		"failed to create CNI conf monitor for default: failed to create fsnotify watcher: too many open files",
	},
	{
		"", `: too many open files`,
		"raise LimitNOFILE of the service that reports it (systemctl edit), and fs.file-max (sysctl) if " +
			"cat /proc/sys/fs/file-nr shows it reached",
		"cat /proc/sys/fs/file-nr; systemctl show -p LimitNOFILE containerd", "", "", "", "failed to open netns: " +
			"open /proc/self/ns/net: too many open files",
	},
	{
		"", `fork/exec .*: cannot allocate memory|runtime: cannot allocate memory`,
		"free memory on the node (free -m, ps aux --sort=-rss), raise the memory limit of the runtime's cgroup, " +
			"or set vm.overcommit_memory to 1",
		"free -m; sysctl vm.overcommit_memory", "", "", "coreos/bugs#489", "unable to create chain " +
			"CNI-HOSTPORT-SETMARK: fork/exec /usr/sbin/iptables: cannot allocate memory",
	},
	{
		"", `fork/exec .*: resource temporarily unavailable`,
		"raise the limit on processes: systemctl set-property containerd.service TasksMax=infinity (crio.service for CRI-O), then kernel.pid_max (sysctl)",
		"systemctl status containerd; sysctl kernel.pid_max kernel.threads-max", "", "", "", "fork/exec /opt/cni/bin/bridge: resource temporarily unavailable",
	},
	{
		"", `dial (tcp|udp): lookup (?P<NAME>\S+|‹[^›]+›)( on .+)?: (no such host|i/o timeout|server ` +
			`misbehaving|.*connection refused)`,
		"put NAME into /etc/hosts, or fix the nameserver in the node's /etc/resolv.conf (getent hosts NAME)",
		"cat /etc/resolv.conf", "", "", "", `Get "https://api.cluster.local:6443/api/v1/nodes/worker-1": dial ` +
			`tcp: lookup api.cluster.local on 10.0.0.2:53: no such host`,
	},

	// Cilium, Calico, Antrea, Flannel, OVN-Kubernetes, Kube-OVN, Weave, Istio.
	{
		"cilium-cni", `/cilium\.sock.*: (no such file or directory|connection refused)`,
		"start cilium-agent on this node: kubectl -n kube-system describe pod -l k8s-app=cilium" + itsState,
		"crictl ps -a --name cilium-agent", "", "", "cilium/cilium#9322", `unable to connect to Cilium agent: failed to create cilium agent client after 30.000000 seconds timeout: Get "http://localhost/v1/config": dial unix /var/run/cilium/cilium.sock: connect: no such file or directory`,
	},
	{
		"", `deletion queue directory \S+ has too many entries`,
		"start cilium-agent on this node, which empties the queue when it starts: kubectl -n kube-system describe " +
			"pod -l k8s-app=cilium" + itsState,
		"ls /run/cilium/deleteQueue; crictl ps -a --name cilium-agent", "", "", "", "deletion queue directory " +
			"/var/run/cilium/deleteQueue has too many entries; aborting",
	},
	{
		"", `failed to acquire deletion queue: failed to acquire lock`,
		"run fuser -v /run/cilium/deleteQueue/lockfile: cilium-agent holds the lock until it has started; if its " +
			"start hangs, read its log",
		"fuser -v /run/cilium/deleteQueue/lockfile", "", "", "cilium/cilium#42074", "failed to acquire deletion queue: " +
			"failed to acquire lock: context deadline exceeded",
	},
	{
		"", `(?i)Cilium API client timeout exceeded|create cilium agent client after .*timeout|/cilium\.sock/.*: context deadline exceeded`,
		"run kubectl -n kube-system exec POD -- cilium-dbg status --verbose for the agent of this node; if the agent does not answer, delete its pod, which the DaemonSet then creates again",
		"crictl ps --name cilium-agent", "", "", "cilium/cilium#32399", "unable to create endpoint: Cilium API client timeout exceeded",
	},
	{
		"", `postIpam\w*Failure.*range is full`,
		"give nodes a larger pod CIDR (clusterPoolIPv4MaskSize) or lower maxPods; remove the node's routes that overlap its pod CIDR, whose addresses Cilium does not use",
		"ip route; cilium-dbg status --all-addresses", "", "", "cilium/cilium#9793", "unable to allocate IP via local cilium agent: [POST /ipam][502] postIpamFailure range is full",
	},
	{
		"", `postIpam\w*Failure.*(No more IPs available|CIDR ranges are exhausted|once Cilium Operator allocates more IPs)`,
		"run kubectl get ciliumnode NODE -o yaml: if its pool keeps free addresses and ADDs fail, delete " +
			"this node's cilium pod; otherwise read cilium-operator's log, which gives the node addresses, and " +
			"enlarge the subnet or pool, or lower maxPods",
		"kubectl get ciliumnodes", "", "", "cilium/cilium#42369", `[POST /ipam][502] postIpamFailure "No more IPs available"`,
	},
	{
		"", `putEndpointId\w* .*\bIP (ipv[46]:\S+|‹[^›]+›) is already in use`,
		"run cilium-dbg endpoint list in this node's cilium pod; if the address has a label reserved:, take the node's " +
			"podCIDR out of the other IPAM's range; if the endpoint's pod is gone, run cilium-dbg endpoint disconnect ID",
		"cilium-dbg endpoint list", "", "", "cilium/cilium#38313", "unable to create endpoint: [PUT " +
			"/endpoint/{id}][400] putEndpointIdInvalid IP ipv4:10.17.239.232 is already in use",
	},
	{
		"", `did not synchronously regenerate after timeout`,
		"read the errors of the agent of this node (kubectl -n kube-system logs POD -c cilium-agent): a BPF program that does not compile or load; raise its CPU limit if there are none",
		"crictl ps --name cilium-agent", "", "", "cilium/cilium#5028", "unable to create endpoint: [PUT /endpoint/{id}][500] putEndpointIdFailed endpoint 45570 did not synchronously regenerate after timeout",
	},
	{
		"", `pool not \(yet\) available`,
		"add addresses of the family that the message names to its CiliumPodIPPool (kubectl get ciliumpodippools -o " +
			"yaml) if it has none; otherwise read cilium-operator's log, which gives the node its part of the pool",
		"kubectl get ciliumpodippools; kubectl get ciliumnode NODE -o yaml", "", "", "cilium/cilium#39274",
		`[POST /ipam][502] postIpamFailure "unable to allocate from pool \"a\" (family ipv6): pool not (yet) available"`,
	},
	{
		"cilium-cni", `PrevResult supplied, but not in chaining mode|invalid chaining-mode`,
		`set "chaining-mode" in cilium-cni's configuration to generic-veth (aws-cni behind aws-cni); if Cilium is to ` +
			"make the pod's interface, take the plugins before cilium-cni out of the plugins list",
		"grep -r chaining-mode /etc/cni/net.d", "", "", "cilium/cilium#28714", "CNI PrevResult supplied, but not in " +
			"chaining mode -- this is invalid, please set chaining-mode in CNI configuration",
	},
	{
		"calico calico-ipam", `connection is unauthorized|\bUnauthorized$`,
		"restart calico-node on this node, which renews the token in /etc/cni/net.d/calico-kubeconfig (kubectl delete pod -A -l k8s-app=calico-node --field-selector spec.nodeName=NODE), with CALICO_MANAGE_CNI=true",
		"kubectl auth whoami --kubeconfig /etc/cni/net.d/calico-kubeconfig", event.FoundToken, "/etc/cni/net.d/calico-kubeconfig", "projectcalico/calico#6546", "error getting ClusterInformation: connection is unauthorized: Unauthorized",
	},
	{
		"", `resource does not exist: ClusterInformation`,
		"start calico-node, which creates it, once Calico's CustomResourceDefinitions are applied (kubectl get " +
			"crd clusterinformations.crd.projectcalico.org)",
		"kubectl get clusterinformations.crd.projectcalico.org", "", "", "", `error getting ClusterInformation: ` +
			`resource does not exist: ClusterInformation(default) with error: ` +
			`clusterinformations.crd.projectcalico.org "default" not found`,
	},
	{
		"", `WorkloadEndpoint\.crd\.projectcalico\.org .*not found`,
		"upgrade Calico: the DEL of this release fails once the pod's WorkloadEndpoint is gone",
		"crictl pods --state NotReady", "", "", "projectcalico/calico#4235",
		`WorkloadEndpoint.crd.projectcalico.org "WorkloadEndpoint(shop/web)" not found`,
	},
	{
		"", `check is set to 'loose'`,
		"run sysctl -w net.ipv4.conf.all.rp_filter=1 and set it in /etc/sysctl.d, too; or set FELIX_IGNORELOOSERPF=true on calico-node",
		"sysctl net.ipv4.conf.all.rp_filter", "", "", "kubermatic/kubermatic#6864",
		"Kernel's RPF check is set to 'loose'. Calico requires net.ipv4.conf.all.rp_filter to be set to 0 or 1.",
	},
	{
		"", `/var/lib/calico/nodename: no such file or directory|(no such file or directory|cannot find the \w+ specified\.?): ` +
			`check that the calico/node`,
		"start calico-node on this node, which writes the file: kubectl describe pod -A -l 'k8s-app in " +
			"(calico-node,calico-node-windows)' shows its state, and kubectl logs -c of its init containers shows why",
		"crictl ps -a --name calico-node", "", "", "projectcalico/calico#6309", "stat /var/lib/calico/nodename: no such file or directory: check that the calico/node container is running and has mounted /var/lib/calico/",
	},
	{
		"", `calico-kubeconfig: no such file or directory`,
		"restart calico-node on this node, whose init container install-cni writes the file: kubectl delete pod -A -l k8s-app=calico-node --field-selector spec.nodeName=NODE",
		"ls -l /etc/cni/net.d", "", "",
		"", "error loading config: open /etc/cni/net.d/calico-kubeconfig: no such file or directory",
	},
	{
		"", `No more free affine blocks and strict affinity|` +
			`Assigned 0 out of \d+ requested .* addresses(; No IPs|; HostReservedAttr: [^;]*$|$)`,
		"add an IPPool (and name it in cni.projectcalico.org/ipv4pools where that is set), or free the blocks of deleted " +
			"nodes (calicoctl ipam check names them); if the message says strict affinity and no node runs Windows, run " +
			"calicoctl ipam configure --strictaffinity=false",
		"calicoctl ipam show --show-blocks", "", "", "", "failed to request IPv4 addresses: Assigned 0 out of 1 requested IPv4 addresses; No more free affine blocks and strict affinity enabled",
	},
	{
		"", `per host block limit|limit of \d+ blocks reached for this node`,
		"run calicoctl ipam configure --max-blocks-per-host=N with a larger N, or lower the kubelet's maxPods",
		"calicoctl ipam show --show-blocks", "", "", "", "cannot allocate new block due to per host block limit",
	},
	{
		"", `Dst: (?P<ADDRESS>[^/ ]+|‹[^›]+›)/?.*already exists for an interface other than`,
		"run ip route show ADDRESS to find the cali interface; if its pod is gone, run ip link delete INTERFACE; otherwise IPAM gave that pod's address again (calicoctl ipam check --show-problem-ips): delete the new pod, so that it gets another",
		"ip route show; calicoctl get workloadendpoints -A", "", "", "projectcalico/calico#8180", "error adding host side routes for interface: calid29a1cadef5, error: route (Ifindex: 131, Dst: 172.25.136.1/32, Scope: link) already exists for an interface other than 'calid29a1cadef5'",
	},
	{
		"", `(?i)the given pool \(.*\) does not exist|parsing pool .*: invalid CIDR|IP address is not in a configured pool`,
		"add an enabled IPPool with the range or name that the message names, or correct that in the pod's annotation " +
			"cni.projectcalico.org/ipv4pools (ipv6pools, ipAddrs), its namespace's, or the CNI configuration (ipv4_pools)",
		"calicoctl get ippools -o wide", "", "", "projectcalico/calico#5674",
		"the given pool (10.20.0.0/24) does not exist, or is not enabled",
	},
	{
		"", `(?i)no configured Calico pools|cannot find a qualified ippool`,
		"add an IPPool of this address family that is enabled and whose nodeSelector fits this node; calicoctl get ippools -o wide lists them",
		"calicoctl get ippools -o wide", "", "", "projectcalico/calico#1607", "IPAM failed: no configured Calico pools",
	},
	{
		"", `Calico is currently not ready to process requests`,
		"run calicoctl get clusterinformation default -o yaml: if datastoreReady is false, and no migration or upgrade of " +
			"Calico runs, run calicoctl datastore migrate unlock; if it is true, restart this node's calico-node, which " +
			"still asks the old datastore",
		"calicoctl get clusterinformation default -o yaml", "", "", "", "Calico is currently not ready to process requests",
	},
	{
		"", `IP from IPAM: resource already exists: (?P<ADDRESS>[\da-f]*[.:][\da-f.:]*[\da-f]|‹[^›]+›)(["':;\s]|$)`,
		"run calicoctl ipam show --ip=ADDRESS: if it names a pod that is deleted, and a node that is Ready, run " +
			"calicoctl ipam release --ip=ADDRESS; otherwise give the new pod another address (annotation " +
			"cni.projectcalico.org/ipAddrs)",
		"calicoctl get workloadendpoints -A", "", "", "projectcalico/calico#5093",
		"error getting IP from IPAM: resource already exists: 10.224.200.20",
	},
	{
		"antrea", `/antrea/cni\.sock.*: (no such file or directory|connection refused)`,
		"start antrea-agent on this node: kubectl -n kube-system describe pod -l component=antrea-agent" + itsState,
		"crictl ps -a --name antrea-agent", "", "", "antrea-io/antrea#832", `rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing dial unix /var/run/antrea/cni.sock: connect: no such file or directory"`,
	},
	{
		"", `failed to get of_port of OVS port .*timed out`,
		"read /var/log/antrea/openvswitch/ovs-vswitchd.log on this node: ovs-vswitchd gave the port no " +
			"number in time; delete its antrea-agent pod, which cuts off the node's pods, only if kubectl -n " +
			"kube-system exec POD -c antrea-ovs -- ovs-appctl version hangs",
		"kubectl -n kube-system get pods -l component=antrea-agent -o wide", "", "", "antrea-io/antrea#1022", `failed to get of_port of OVS port web-1d1224: timed out: "wait" timed out after 5002 ms`,
	},
	{
		"antrea", `does not support key prevResult`,
		"set trafficEncapMode in antrea-config to networkPolicyOnly if antrea follows another CNI; otherwise make antrea the first plugin of its conflist",
		"ls /etc/cni/net.d", "", "",
		"antrea-io/antrea#2881", "Network configuration does not support key prevResult and value",
	},
	{
		"", `/subnet\.env: no such file or directory`,
		"start flanneld, which writes the file: kubectl -n kube-flannel describe pod -l app=flannel shows " +
			"its state, and kubectl logs shows why it exited, such as a node without podCIDR; if another CNI " +
			"replaced Flannel, move Flannel's file out of /etc/cni/net.d",
		"crictl ps -a --name kube-flannel; ls -l /run/flannel", "", "", "flannel-io/flannel#2253", "loadFlannelSubnetEnv failed: open /run/flannel/subnet.env: no such file or directory",
	},
	{
		"", `subnet\.env is missing FLANNEL_`,
		"restart flanneld on this node, which writes the file again: kubectl delete pod -A -l app=flannel --field-selector spec.nodeName=NODE",
		"cat /run/flannel/subnet.env", "", "", "", "/run/flannel/subnet.env is missing FLANNEL_NETWORK, FLANNEL_SUBNET, FLANNEL_MTU, FLANNEL_IPMASQ",
	},
	{
		"", `/net/bridge/bridge-nf-call-ip6?tables: (?i:no such file or directory)`,
		"load the module: modprobe br_netfilter; list it in /etc/modules-load.d, too; if the node is a container, load " +
			"it on its host",
		"modinfo br_netfilter", event.FoundModule, "br_netfilter", "flannel-io/flannel#2166",
		"Failed to check br_netfilter: stat /proc/sys/net/bridge/bridge-nf-call-iptables: no such file or directory",
	},
	{
		"", `Network (\S+|‹[^›]+›) overlaps with existing (route|address)`,
		"delete the route if it is that of a CNI that is gone (ip route); otherwise set IPALLOC_RANGE of the DaemonSet " +
			"weave-net to a range that no route of a node overlaps, which gives all pods new addresses",
		"ip route", "", "", "weaveworks/weave#3211", "Network 10.32.0.0/12 overlaps with existing route 10.0.0.0/8 on host",
	},
	{
		"", `/db\.sock\b.*((?i:no such file or directory)|[Cc]onnection refused)`,
		"start ovsdb-server on this node: systemctl start ovsdb-server ovs-vswitchd, or the pod that runs them",
		"systemctl status openvswitch; crictl ps -a --name ovs", "", "", "",
		"ovs-vsctl: unix:/var/run/openvswitch/db.sock: database connection failed (No such file or directory)",
	},
	{
		"", `(signal: alarm clock|signal 14 \(Alarm clock\)|exit status 142)`,
		"start ovs-vswitchd, or read its log if it runs: ovs-vsctl has its change in the database and waits for " +
			"that process",
		"systemctl status openvswitch; ovs-appctl version", "", "", "", "failed to run ovs-vsctl --timeout=30 " +
			"add-port br-int veth1a2b3c4d: signal: alarm clock",
	},
	{
		"", `timed out (while )?waiting for (OVS port binding|OVS flows|pod flows)`,
		"read what ovn-controller logged on this node: it binds the port and writes its flows, or says why not; if it " +
			"hangs, restart it: kubectl delete pod -A -l app=ovnkube-node --field-selector spec.nodeName=NODE",
		"ovs-vsctl show; crictl ps --name ovn-controller", "", "", "ovn-kubernetes/ovn-kubernetes#3115", "CNI request failed with status 400: '[shop/web-7f9c6-x2b4n b6385006e8b3eedeaa1fd60e3e69afc9fb758a27666c93708a9211b3c988ab34] failed to configure pod interface: timed out waiting for OVS port binding (ovn-installed)'",
	},
	{
		"", `failed to get pod annotation: timed out waiting for (annotations|the condition)`,
		"fix ovnkube-controller (ovnkube-master before 4.14), which writes k8s.ovn.org/pod-networks: kubectl logs of its pod shows why it does not",
		"kubectl get pod POD -o yaml", "", "", "", "failed to get pod annotation: timed out waiting for annotations: context deadline exceeded",
	},
	{
		"ovn-k8s-cni-overlay", `ovn-cni-server\.sock.*: (no such file or directory|connection refused)`,
		"start ovnkube-node on this node: kubectl describe pod -A -l app=ovnkube-node" + itsState,
		"crictl ps -a --name ovnkube", "", "", "", `failed to send CNI request: Post "http://dummy/": dial unix /var/run/ovn-kubernetes/cni/ovn-cni-server.sock: connect: connection refused`,
	},
	{
		"", `no packets received from gateway|gateway check of .* canceled|with gateway (\S+|‹[^›]+›) is not ready for interface`,
		"have the subnet's gateway, which the message names, answer ARP and ping (tcpdump -ni any arp or icmp " +
			"shows whether it does), unless the pod was deleted first; if it never answers them, set " +
			"disableGatewayCheck: true in the Subnet",
		"kubectl get subnets.kubeovn.io", "", "", "kubeovn/kube-ovn#5728",
		"request ip return 500 configure nic failed no packets received from gateway 172.17.17.1",
	},
	{
		"", `has already been used by host with MAC`,
		"delete the new pod, so that it gets another address; upgrade Kube-OVN if kubectl get ips.kubeovn.io lists the MAC " +
			"address that the message names; otherwise add the IP address to excludeIps of the Subnet: another host has it",
		"kubectl get ips.kubeovn.io", "", "", "kubeovn/kube-ovn#3170", "request ip return 500 configure nic failed IP " +
			"address 10.24.118.16 has already been used by host with MAC 00:00:00:83:f9:81",
	},
	{
		"", `see kube-ovn-controller logs|return 500 no available ip for pod`,
		"read what kube-ovn-controller logged for this pod (kubectl -n kube-system logs -l " +
			"app=kube-ovn-controller): it writes the pod's address and routes, and did not",
		"kubectl -n kube-system get pods -l app=kube-ovn-controller", "", "", "kubeovn/kube-ovn#1405",
		"route is not ready for pod shop/web-0 provider ovn, please see kube-ovn-controller logs to find errors",
	},
	{
		"kube-ovn", `kube-ovn-daemon\.sock.*: (no such file or directory|connection refused)`,
		"start kube-ovn-cni on this node: kubectl -n kube-system describe pod -l app=kube-ovn-cni" + itsState,
		"crictl ps -a --name cni-server", "", "", "kubeovn/kube-ovn#5836", `Post "http://dummy/api/v1/add": dial unix /run/openvswitch/kube-ovn-daemon.sock: connect: no such file or directory`,
	},
	{
		"weave-net weave-ipam", `unable to \w+ IP address: .*connection refused|did you launch weave\?`,
		"start weave on this node: kubectl -n kube-system describe pod -l name=weave-net" + itsState,
		"crictl ps -a --name weave", "", "", "weaveworks/weave#3998", `unable to allocate IP address: Post "http://127.0.0.1:6784/ip/713ed7fc025a5dac1ebd36fb05fe22c1201539d5c734f5373cf512f7d22369ff": dial tcp 127.0.0.1:6784: connect: connection refused`,
	},
	{
		"istio-cni", `unable to push CNI event.*(\(status code|error was \d)`,
		"start ztunnel on this node if the message says no ztunnel connection (kubectl describe pod -A -l app=ztunnel); " +
			"otherwise read what istio-cni-node logged for the pod: it answered, and failed to redirect the pod's traffic",
		"crictl ps; crictl logs $(crictl ps -q --name install-cni)", "", "", "istio/istio#53843",
		"istio-cni cmdAdd failed to contact node " +
			"Istio CNI agent: unable to push CNI event (status code 500): unable to check that dataplane is healthy",
	},
	{
		"istio-cni", `failed to (contact node Istio CNI agent|send event request): .*(no such file or directory|connection refused)`,
		"start istio-cni-node on this node: kubectl describe pod -A -l k8s-app=istio-cni-node" + itsState,
		"crictl ps -a --name install-cni", "", "", "", "istio-cni cmdAdd failed to contact node Istio CNI agent: failed " +
			`to send event request: Post "http://localhost/cmdadd": dial unix /var/run/istio-cni/pluginevent.sock: ` +
			"connect: connection refused",
	},
	{
		"", `(stat|open) /\S*((/cni/|net\.d|multus\.d|whereabouts\.d)\S*kubeconfig|net\.d/‹base64 \d+›): no such file or directory`,
		"start this CNI's DaemonSet pod on the node, which writes the file that the message names; if its log " +
			"says that it wrote it elsewhere, correct its host directory or the path in the CNI configuration",
		"find /etc/cni /var/lib/rancher -name '*kubeconfig'", "", "", "bitnami/charts#30606",
		"error getting k8s client: stat /etc/cni/net.d/multus.d/multus.kubeconfig: no such file or directory",
	},

	// Multus, SR-IOV.
	{
		"multus multus-shim", `/multus\.sock.*: (no such file or directory|connection refused)`,
		"start the Multus daemon on this node: kubectl -n kube-system describe pod -l name=multus" + itsState,
		"crictl ps -a --name multus", "", "", "k8snetworkplumbingwg/multus-cni#1165", `CmdAdd (shim): failed to send CNI request: Post "http://dummy/cni": dial unix /run/multus/multus.sock: connect: connection refused`,
	},
	{
		"multus multus-shim", `pod: Unauthorized`,
		"restart Multus on this node, which writes a new token to its kubeconfig in /etc/cni/net.d/multus.d: kubectl delete pod -A -l name=multus --field-selector spec.nodeName=NODE",
		"kubectl auth whoami --kubeconfig /etc/cni/net.d/multus.d/multus.kubeconfig", event.FoundToken, "/etc/cni/net.d/multus.d/multus.kubeconfig", "k8snetworkplumbingwg/multus-cni#852", "Multus: [shop/web-7f9c6-x2b4n]: error getting pod: Unauthorized",
	},
	{
		"", `(?i)waiting for readinessindicatorfile|default network is ready\? still waiting`,
		"start the cluster's default network on this node, whose agent writes the file that Multus waits for; correct readinessindicatorfile in Multus' configuration if its name changed",
		"grep -r readinessindicatorfile /etc/cni/net.d; ls /etc/cni/net.d", "", "", "k8snetworkplumbingwg/multus-cni#633", "PollImmediate error waiting for ReadinessIndicatorFile: timed out waiting for the condition",
	},
	{
		"", `(?i)err in getCNIConfigFromFile: no network(s found| available in the name .+) in `,
		"put a CNI configuration of the name that the NetworkAttachmentDefinition has into the directory that the " +
			"message names, or write it into the definition (spec.config): without that Multus reads it there",
		"ls -l /etc/cni/multus/net.d; kubectl get network-attachment-definitions -A", "", "",
		"k8snetworkplumbingwg/multus-cni#641", "GetNetworkDelegates: failed getting the delegate: GetCNIConfig: " +
			"err in GetCNIConfigFromFile: No networks found in /etc/cni/multus/net.d",
	},
	{
		"", `network-attachment-definition \(\) in namespace`,
		"fix the pod's annotation k8s.v1.cni.cncf.io/networks, in which a name is empty, such as after a last comma",
		"kubectl get pod POD -o yaml", "", "", "k8snetworkplumbingwg/multus-cni#1195", "cannot find a " +
			"network-attachment-definition () in namespace (shop): resource name may not be empty",
	},
	{
		"", `cannot find a network-attachment-definition .*: .*not found`,
		"add the NetworkAttachmentDefinition to the pod's namespace, or write NAMESPACE/NAME in its annotation k8s.v1.cni.cncf.io/networks",
		"kubectl get network-attachment-definitions -A", "", "", "", "GetNetworkDelegates: failed getting the delegate: getKubernetesDelegate: cannot find a network-attachment-definition (macvlan-conf) in namespace (shop): not found",
	},
	{
		"", `expected pod .*but got .* from Kube API`,
		"do nothing if the pod was deleted and created again under its name: the call was for the old one; upgrade Multus " +
			"if it is a static pod, whose UID this release does not expect",
		"kubectl get pod POD -o yaml", "", "", "k8snetworkplumbingwg/multus-cni#773", "Multus: [shop/web-7f9c6-x2b4n]: " +
			`expected pod UID "70a2d08f8ad8cd5dfc51ad71fefd1e78" but got "d59103af-b6f6-4e90-84ba-d91112074703" from Kube API`,
	},
	{
		"", `namespace isolation enabled, annotation violates permission`,
		"move the NetworkAttachmentDefinition into the pod's namespace, or list its namespace in globalNamespaces of Multus' configuration",
		"kubectl get network-attachment-definitions -A", "", "", "", "GetNetworkDelegates: namespace isolation enabled, annotation violates permission, pod is in namespace shop but refers to target namespace infra",
	},
	{
		"", `(?i)reading the delegates: .*no such file or directory`,
		"upgrade Multus: the DEL of this release fails without its file of the sandbox, which a reboot or an " +
			"earlier DEL removed",
		"ls /var/lib/cni/multus", "", "", "k8snetworkplumbingwg/multus-cni#586", "Multus: Err in  reading the " +
			`delegates: failed to read container data in the path("/var/lib/cni/multus/web"): open ` +
			"/var/lib/cni/multus/web: no such file or directory",
	},
	{
		"", `error reading cached NetConf in /var/lib/cni/((ib-)?sriov|‹[^›]+›) with name`,
		"upgrade the plugin (sriov, ib-sriov): the DEL of this release fails without its file of the sandbox, which a failed " +
			"ADD did not write or a reboot removed",
		"ls /var/lib/cni/sriov", "", "", "k8snetworkplumbingwg/sriov-cni#178", "error reading cached NetConf in " +
			"/var/lib/cni/sriov with name web-net1",
	},
	{
		"", `failed to set vf \d+ .*: operation not supported`,
		"replace sriov with ib-sriov if the device is InfiniBand; otherwise take the option that the message names (vlan, " +
			"link_state) out of the sriov configuration, or, if it is not there, update the device's driver, which refuses it",
		"ip -d link show PF; dmesg", "", "", "k8snetworkplumbingwg/sriov-cni#208",
		`SRIOV-CNI failed to configure VF "failed to set vf 2 vlan: operation not supported"`,
	},
	{
		"", `VF (\S+|‹[^›]+›) GUID is not valid`,
		"give the virtual function a GUID: ip link set PF vf N node_guid GUID, then port_guid GUID, before pods use it; or " +
			"set guid in the pod's network annotation, or start ib-kubernetes",
		"ip link show PF", "", "", "k8snetworkplumbingwg/ib-sriov-cni#66",
		`infiniBand SRI-OV CNI failed to configure VF "VF ib4 GUID is not valid"`,
	},
	{
		"", `failed to move (.* to netns: "?|link )file exists`,
		"give the device another name on the node (systemd.link, udev): the pod has an interface of that name",
		"ip -br link; ip netns exec NETNS ip -br link", "", "", "k8snetworkplumbingwg/sriov-network-device-plugin#8",
		"failed to set up pod interface \"net1\" from the device \"enp216s0f2\": failed to move vf 0 to netns: file exists",
	},
	{
		"", `bringing interface up in container ns: \W*(device or resource busy|input/output error)`,
		"run dmesg, where the driver of the device says why it did not bring it up; then update the driver and the firmware",
		"dmesg; ethtool -i DEVICE", "", "", "k8snetworkplumbingwg/sriov-cni#213",
		`error bringing interface up in container ns: "device or resource busy"`,
	},
	{
		"", `VF pci addr is required`,
		"add the annotation k8s.v1.cni.cncf.io/resourceName to the NetworkAttachmentDefinition, and that resource to the pod's limits",
		"kubectl get node NODE -o yaml", "", "", "k8snetworkplumbingwg/sriov-network-device-plugin#258", "SRIOV-CNI failed to load netconf: LoadConf(): VF pci addr is required",
	},
	{
		"", `failed to get VF information.*/(?P<PCI>[^/ ]+|‹[^›]+›)/physfn/net: no such file or directory`,
		"drain the node and set sriov_numvfs again, which removes all virtual functions, if PCI is gone; replace sriov with " +
			"host-device, or select other devices, if PCI has no physfn; otherwise give its physical function an interface " +
			"in the node's namespace",
		"ls -d /sys/bus/pci/devices/*/physfn", "", "", "k8snetworkplumbingwg/sriov-cni#206", `SRIOV-CNI failed to load netconf: LoadConf(): failed to get VF information: "lstat /sys/bus/pci/devices/0000:41:00.0/physfn/net: no such file or directory"`,
	},

	// Clouds.
	{
		"aws-cni", `failed to assign an IP address to container`,
		"read why in /var/log/aws-routed-eni/ipamd.log: add addresses to a full subnet, AmazonEKS_CNI_Policy to a role " +
			"without it, ENABLE_PREFIX_DELEGATION=true if the ENIs are full (or lower maxPods); kubectl describe pod " +
			"shows why a security group's branch ENI is missing",
		"tail /var/log/aws-routed-eni/ipamd.log", "", "", "aws/amazon-vpc-cni-k8s#1791", "add cmd: failed to assign an IP address to container",
	},
	{
		"aws-cni", `(Network gRPC call|failed to connect to backend server).*connection refused`,
		"start aws-node on this node: kubectl -n kube-system describe pod -l k8s-app=aws-node shows its state, and /var/log/aws-routed-eni/ipamd.log has its last lines",
		"crictl ps -a --name aws-node", "", "", "aws/amazon-vpc-cni-k8s#1590", `add cmd: Error received from AddNetwork gRPC call: rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:50051: connect: connection refused"`,
	},
	{
		"aws-cni", `wrong client version`,
		"do nothing if aws-node was just upgraded: it replaces the plugin as it starts, and the kubelet retries; if it " +
			"lasts, run kubectl -n kube-system delete pod -l k8s-app=aws-node --field-selector spec.nodeName=NODE",
		"ls -l /opt/cni/bin/aws-cni", "", "", "aws/amazon-vpc-cni-k8s#1139", "add cmd: Error received from AddNetwork " +
			`gRPC call: rpc error: code = FailedPrecondition desc = wrong client version "" (!= "v1.7.0")`,
	},
	{
		"aws-cni", `failed to (setup network policy|connect to network policy agent)`,
		"start the container aws-eks-nodeagent of aws-node on this node; if crictl ps shows that it runs, start fewer " +
			"pods at once, raise its CPU limit, or read /var/log/aws-routed-eni/network-policy-agent.log: it refused, or took " +
			"over 2s",
		"crictl ps -a --name aws-eks-nodeagent", "", "", "aws/aws-network-policy-agent#585",
		"add cmd: failed to setup network policy",
	},
	{
		"terway", `error dial to terway|/eni\.socket.*(no such file or directory|connection refused)`,
		"start terway on this node: kubectl -n kube-system describe pod -l 'app in (terway,terway-eniip)'" + itsState,
		"crictl ps -a --name terway", "", "", "", "error dial to terway /var/run/eni/eni.socket, terway pod may staring, context deadline exceeded",
	},
	{
		"terway", `error assign address|IpNotEnough|error wait pod eni info|error alloc ip.*context deadline exceeded`,
		"add a vSwitch with free addresses in the node's zone (vswitches of ConfigMap eni-config) if the message, or " +
			"terway (kubectl -n kube-system logs -l 'app in (terway,terway-eniip)' -c terway), says IpNotEnough; " +
			"otherwise fix what it names",
		"crictl ps -a --name terway", "", "", "AliyunContainerService/terway#100",
		"error alloc ip rpc error: code = Unknown desc = error wait pod eni info, timed out waiting for the condition",
	},
	{
		"terway", `can't found dev by mac`,
		"do nothing if the pod starts after a retry: the node had not loaded the ENI yet; if it lasts, and dmesg says that " +
			"its driver lacked memory, run kubectl drain NODE --ignore-daemonsets and reboot the node",
		"ip -br link; dmesg", "", "", "", "error parse config, can't found dev by mac 00:16:3e:01:c2:e8: not found",
	},
	{
		"", `postIpamIpFailure.*all IP addresses used`,
		"add addresses to the SpiderIPPool that the message names (spec.ips), or to the SpiderSubnet that made that pool; kubectl get spiderippool shows how many each has",
		"kubectl get spiderippool; kubectl get spiderendpoint -A", "", "", "spidernet-io/spiderpool#1034",
		"[POST /ipam/ip][500] postIpamIpFailure  failed to allocate any IPv4 IP address to eth0 from IPPools [pool-v4]: all IP addresses used out",
	},
	{
		"azure-vnet azure-vnet-ipam", `timed out locking store|Store is locked`,
		"run pgrep azure-vnet; if it finds a process that hangs, kill it; if it finds none, run rm -f /var/run/azure-vnet.json.lock /var/run/azure-vnet-ipam.json.lock",
		"ls -l /var/run/azure-vnet*.lock; pgrep -a azure-vnet", "", "", "Azure/azure-container-networking#464", "Failed to initialize key-value store of network plugin: timed out locking store",
	},
	{
		"azure-vnet azure-ipam", `(http request failed: |"http://[^"]*/network/).*(connection|actively) refused`,
		"start azure-cns on this node: kubectl -n kube-system describe pod -l 'k8s-app in (azure-cns,azure-cns-win)'" +
			itsState,
		"crictl ps -a --name cns-container", "", "", "", `http request failed: Post "http://localhost:10090/network/requestipconfigs": dial tcp 127.0.0.1:10090: connect: connection refused`,
	},
	{
		"azure-vnet azure-vnet-ipam azure-ipam", `(not enough|[nN]o) IPs available|No available addresses`,
		"read this node's log of azure-cns (kubectl -n kube-system logs -l 'k8s-app in (azure-cns,azure-cns-win)') if " +
			"the message names it; add addresses to the subnet of the node pool if it is full; otherwise lower its maxPods",
		"kubectl -n kube-system get nnc", "", "", "Azure/azure-container-networking#333", "Failed to allocate pool: Failed to delegate: Failed to allocate address: No available addresses",
	},
	{
		"azure-vnet", `TransparentEndpointClient Error ?: operation not supported`,
		"upgrade azure-vnet (CNI bin directory or node image): this release deletes routes with a flag that kernels from " +
			"5.19 on refuse; if it is recent, load the module: modprobe veth",
		"uname -r; modinfo veth", "", "", "Azure/AKS#3939",
		"Failed to create endpoint: TransparentEndpointClient Error : operation not supported",
	},
}
