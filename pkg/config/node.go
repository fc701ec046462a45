package config

import "time"

// Metrics is where counts and health are served.
type Metrics struct {
	// Address that serves metrics and health: "127.0.0.1:9471" for this node only, ":9471" for every address of the node.
	Listen string `key:"listen" is:"listen"`
	// File that says who may read, as Prometheus' exporters read it: TLS, client certificates and users
	// (github.com/prometheus/exporter-toolkit/blob/master/docs/web-configuration.md). cniscope reads certificates and
	// passwords again when they change.
	WebConfig string `key:"web_config" is:"path"`
	// Address that serves /healthz and /readyz alone, in plain text, such as "127.0.0.1:9472": for a kubelet's probe,
	// which has neither a client certificate nor a password.
	HealthListen string `key:"health_listen" is:"listen"`
}

// NRI is how the runtime's plugin interface is reached.
type NRI struct {
	// false: do not connect to NRI.
	Enabled bool `key:"enabled" default:"true" linux:"only"`
	// Socket of NRI, unless the runtime started cniscope.
	Socket string `key:"socket" default:"/var/run/nri/nri.sock" is:"socket" linux:"only"`
}

// Runtime is how the container runtime is reached.
type Runtime struct {
	// CRI socket. If the default does not exist, cniscope uses the first socket that exists of k3s, CRI-O, cri-dockerd,
	// k0s and MicroK8s.
	Socket string `key:"socket" default:"/run/containerd/containerd.sock" is:"socket" was:"containerd.address 0.2"`
}

// CNI is where the runtime's network configuration lies.
type CNI struct {
	// Directory of the CNI configuration, which names the plugins of each network.
	ConfDir string `key:"conf_dir" default:"/etc/cni/net.d" is:"path"`
}

// Probe is what the kernel probe reads.
type Probe struct {
	// false: detach the probe, so that cniscope costs other processes nothing and sees no calls. With "connector" cniscope
	// restarts when this becomes true again.
	Enabled bool `key:"enabled" default:"true" reload:"live"`
	// How cniscope observes processes. "bpf": BPF programs. "connector": the kernel's process connector and /proc, which
	// see plugins, delegated plugins and commands with their durations and exit codes, but no system calls and no waits;
	// the connector works on the node itself, or in a pod with hostPID and hostNetwork. "auto": bpf, and connector if the
	// kernel refuses BPF programs; the log, `cniscope status` and the attribute cniscope.source name it.
	Source string `key:"source" default:"auto" oneof:"auto bpf connector"`
	// Size of the ring buffer between kernel and cniscope, which is part of the process's memory. A larger buffer loses
	// fewer events in a burst.
	Ring int64 `key:"ring" default:"2MiB" range:"64KiB..64MiB" unit:"bytes, a power of two"`
	// Arguments of commands that are shown: "known" those that are known to be harmless (options of iptables, nft, ip, tc,
	// ipset, conntrack, sysctl, ovs-vsctl and ovs-ofctl; of PowerShell the cmdlets), "none", or "all". Arguments may
	// hold secrets: set "all" only on machines of your own.
	Arguments string `key:"arguments" default:"known" oneof:"known none all"`
	// When system calls of plugins are traced. "auto": while an ADD, DEL, CHECK or GC is in progress, and for linger after
	// it; "always"; "commands": never, so that only plugins and commands are seen. On Linux before 6.12 every system
	// call of the node takes about 80 ns more while tracing is on.
	Detail string `key:"detail" default:"auto" oneof:"auto always commands" reload:"live"`
	// Time for which system-call tracing stays on after the last call, with detail "auto". It is one second
	// if calls are more than about 5 s apart.
	Linger time.Duration `key:"linger" default:"30s" range:"1s..24h"`
	// Patterns (*, ?, [abc]) for the names of agents, as "ps -o comm" shows them (15 bytes). An agent is a
	// daemon that plugins connect to: Antrea's, Calico's, Multus'. cniscope shows what it does for a plugin below that
	// plugin. cniscope finds an agent at a plugin's first call; an agent that is named here is followed before, so
	// that the start of the first call is seen.
	//
	//	agents = ["antrea-agent"]
	Agents []string `key:"agents" range:"..100" was:"agent 0.2 new"`
	// How far agents are followed: 0 not at all, 1 the agent that a plugin calls and its commands, 2 also
	// the agents that this agent calls.
	AgentDepth int `key:"agent_depth" default:"1" range:"0..2"`
	// Further programs that run CNI plugins, besides the processes that serve nri.socket and runtime.socket: patterns
	// (*, ?, [abc]) for the path that /proc/PID/exe shows, such as cri-dockerd, or a containerd inside a container. The
	// program is trusted only if it has CAP_SYS_ADMIN on the node (docs/trust.md).
	//
	//	callers = ["/usr/bin/cri-dockerd", "/var/lib/rancher/k3s/data/*/bin/containerd"]
	Callers []string `key:"callers" is:"program" range:"..16"`
	// true: also trust a program of callers in a user namespace (rootless containerd), if it is a file of the host. Any
	// user of the host may start it, and then name any pod.
	Rootless bool `key:"rootless" linux:"only"`
}

// Limits bound what is held in memory.
type Limits struct {
	// Time for which an operation waits after its last plugin: for the next plugin, and for NRI to report that the sandbox
	// runs, which ends the wait.
	Settle time.Duration `key:"settle" default:"2s" range:"10ms..1m" record:"Settle"`
	// Time after which an operation is sent although it is not over.
	MaxHold time.Duration `key:"max_hold" default:"10m" range:"1s..24h" fixed:"0.3" record:"MaxHold"`
	// Processes that are followed at one time.
	Processes int `key:"processes" default:"8192" range:"256..131072" record:"Processes"`
	// Operations that are open at one time.
	Operations int `key:"operations" default:"1024" range:"16..65536" record:"Operations"`
	// Images (executed programs) of one operation.
	Images int `key:"images" default:"2000" range:"16..5000" record:"Images" was:"limits.spans 0.2"`
	// Facts of one operation: waits, requests, changes of the network.
	Facts int `key:"facts" default:"1000" range:"16..5000" record:"Facts"`
	// Duration below which a wait or request inside a plugin has no span of its own. Shorter ones are counted on
	// the plugin's span, which also has changes of the network as events.
	MinSpan time.Duration `key:"min_span" default:"1ms" range:"100us..1s" record:"MinSpan"`
}

// Leaks is about what sandboxes that are gone still hold.
type Leaks struct {
	// Age at which an ADD without a DEL, or a lease without a sandbox, is reported. A sandbox that is being made is not in
	// the runtime's list, and kubelet waits up to 4 minutes for it.
	After time.Duration `key:"after" default:"5m" range:"1s..24h"`
}

// Log is what cniscope logs.
type Log struct {
	// Least severity that is logged.
	Level string `key:"level" default:"info" oneof:"debug info warn error" reload:"live"`
	// Form of a line.
	Format string `key:"format" default:"text" oneof:"text json"`
}

// State is where cniscope keeps what lives only as long as it runs.
type State struct {
	// Directory of the lock that lets one cniscope run on a node, and of its control socket. Only root may be able to
	// write to it and to the directories above it.
	Dir string `key:"dir" default:"/run/cniscope" is:"path" was:"run.dir 0.2"`
}

// Control says who may query a running cniscope.
type Control struct {
	// Group, by name or number, whose members may read over a socket (read.sock) what this node remembers, its calls in
	// progress and its findings, and change nothing; empty: no socket. The socket shows every pod's calls, so its
	// reader decides who sees which, as the query sidecar of the DaemonSet does (docs/fleet.md). cniscope
	// needs CAP_CHOWN, or membership of the group.
	//
	//	read_group = "60947"
	ReadGroup string `key:"read_group" is:"group" linux:"only"`
	// Directory of that socket, which holds nothing else. Empty: read, in state.dir.
	ReadDir string `key:"read_dir" is:"path" linux:"only"`
}
