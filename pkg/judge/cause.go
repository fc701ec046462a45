package judge

import (
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/cniscope/cniscope/pkg/attr"
)

// About is what holds of a cause in any call.
type About struct {
	Cause Cause
	Name  string
	// Parts are the kinds that this cause accounts for; none if it takes no time.
	Parts []PartKind
	// Remedy is general; a verdict's own names processes and files.
	Remedy string
}

func (c Cause) remedy() string { return c.About().Remedy }

// About describes a cause; of an unknown one it has the name.
func (c Cause) About() About {
	if i := slices.IndexFunc(causes, func(a About) bool { return a.Cause == c }); i >= 0 {
		return causes[i]
	}
	return About{Cause: c, Name: string(c)}
}

// Causes lists all causes.
func Causes() []About { return slices.Clone(causes) }

var causes = []About{
	{
		CauseLock, "file lock",
		[]PartKind{Locks},
		"shorten what the holder does under the lock; for kube-proxy, use mode nftables or raise minSyncPeriod; " +
			"for host-local, use a smaller range or put its dataDir on tmpfs",
	},
	{
		CauseKernelLock, "kernel lock",
		[]PartKind{KernelLocks},
		"start and delete fewer pods at once on this node: each change of an interface, route or namespace takes this lock",
	},
	{
		CauseDAD, "IPv6 DAD",
		[]PartKind{DAD},
		"set enabledad = false in plugin bridge, or net.ipv6.conf.default.accept_dad = 0 in the pod's network namespace; " +
			"do this only if IPAM never gives two pods the same address",
	},
	{
		CauseRetry, "iptables retry",
		[]PartKind{Sleep, Commands},
		"upgrade iptables to 1.8.8 or later and call it with --wait, or switch to its nft backend, which takes no lock",
	},
	{CauseCommands, "many commands", []PartKind{Commands}, atOnce("")},
	{CauseCommand, "slow command", []PartKind{Commands, Agents}, instead("")},
	{
		CausePowerShell, "PowerShell",
		[]PartKind{Commands},
		"replace PowerShell with the HCN API (hcsshim), or keep one PowerShell running: each start loads " +
			".NET and its modules again",
	},
	{
		CauseScan, "host-local scan",
		[]PartKind{Plugins, SystemCalls},
		"shrink host-local's ranges, or put its dataDir on tmpfs; run cniscope doctor: its check leaked-leases finds the " +
			"leases of removed pods",
	},
	{
		CauseLockFile, "existing lock file",
		[]PartKind{Sleep},
		"run fuser -v on the lock file that the trace names; if a process holds the file open and hangs, kill the process; " +
			"if no process holds the file open, remove the file",
	},
	{
		CauseMissingFile, "missing file",
		[]PartKind{Sleep},
		"start the program that writes the missing file, or correct its path in the plugin's configuration (the trace names the file)",
	},
	{
		CauseSleep, "sleep",
		[]PartKind{Sleep},
		"shorten the plugin's poll or retry interval; or speed up what the plugin waits for: the spans before and after " +
			"each sleep show it",
	},
	{
		CausePlugin, "plugin's own work",
		[]PartKind{Plugins},
		"raise the CPU limit of the runtime's cgroup, if there is a limit; run perf record -a -g while a pod starts, and " +
			"send the profile to the plugin's authors",
	},
	{
		CauseHalted, "stopped plugin",
		[]PartKind{Halts},
		"run kill -CONT PID if /proc/PID/status of the plugin says State: T; detach the debugger if TracerPid there is not " +
			"0; thaw the plugin's cgroup if it is frozen",
	},
	{
		CauseLeakedChild, "leaked child process",
		[]PartKind{Waiting, Between},
		"change the plugin so that it redirects the standard output of the process that it leaves running (>/dev/null) or waits until that process exits",
	},
	{CauseFailed, "plugin error", nil, ""},
	{CauseMissing, "missing plugin", nil, "install the missing plugin into the CNI binary directory and make it executable; cniscope doctor names the directory"},
	{CauseAgent, "slow agent", []PartKind{Agents}, "read the agent's log of that time (kubectl logs --timestamps); raise the agent's CPU limit" + ifThrottled},
	{CausePeer, "behind the agent", []PartKind{Agents}, "read the trace to find the process below the agent's connection; resume that process if it is stopped; raise its CPU limit if it is on a CPU; otherwise read its log of that time"},
	{CauseStopped, "stopped agent", []PartKind{Agents}, "run kill -CONT PID if /proc/PID/status of the agent says State: T; write 0 to cgroup.freeze of the agent's cgroup if it is frozen"},
	{CauseIdle, "idle agent", []PartKind{Agents}, "read the agent's log of that time (kubectl logs --timestamps): the agent slept, or waited for something that is not traced"},
	{CauseBusy, "busy agent", []PartKind{Agents}, "start fewer pods at once, or raise the agent's limit of requests"},
	{CauseRefused, "agent not answering", []PartKind{Agents}, "start the agent (kubectl logs --previous shows why it exited), or correct the agent's address in the plugin's configuration"},
	{CauseEnded, "agent ended", []PartKind{Agents}, "start the agent again and fix why it exited; " + whyExited},
	{CauseRestarted, "agent restarted", []PartKind{Agents}, "fix why the agent exited, unless it was restarted on purpose; " + whyExited},
	{CauseOOM, "agent out of memory", []PartKind{Agents}, "raise the agent's memory limit (resources.limits.memory); if dmesg says constraint=CONSTRAINT_NONE, the whole node ran out of memory: move pods off the node"},
	{CauseAPIServer, "API server", []PartKind{Agents}, "run kubectl get --raw '/readyz?verbose' and fix what fails; if nothing fails, raise the limit of the plugin's client (QPS, burst), or use an IPAM that asks less often"},
	{
		CauseStarved, "CPU starved",
		[]PartKind{Plugins, Commands, Between, Unexplained},
		"take load off the node's CPUs: start fewer pods at once, move pods away, or raise the CPU limit of the " +
			"runtime's cgroup",
	},
	{
		CauseNetwork, "network configuration",
		[]PartKind{Network},
		"load the kernel module that the request needs at boot (/etc/modules-load.d), or split a bridge that has very " +
			"many ports (the trace names the request and its interface)",
	},
	{
		CauseMount, "mount",
		[]PartKind{SystemCalls},
		"restart the program that serves the file system (FUSE, a CSI driver), or its server (NFS); thaw a frozen file " +
			"system (fsfreeze -u); if no pod uses the file system, unmount it (umount -l)",
	},
	{
		CauseSystemCall, "system call",
		[]PartKind{SystemCalls},
		"move the plugin's files to a faster disk, or stop other writers: iostat -x 1 and iotop show them",
	},
	{
		CauseRuntime, "runtime",
		[]PartKind{Between},
		"read the runtime's log of that time (journalctl -u containerd, or crio), or have containerd send its spans " +
			"(docs/traces.md, Under containerd's own spans)",
	},
	{CauseUnexplained, "unexplained", []PartKind{Unexplained, Waiting}, `set [probe] detail = "auto" or "always" to trace system calls; if the attribute cniscope.source is not "bpf", allow BPF programs first`},
	{
		CauseShim, "shim",
		[]PartKind{Between},
		"read the runtime's log of that time; if the shim is a wrapper, run it under strace -f -r",
	},
	{
		CauseOCIRuntime, "OCI runtime",
		[]PartKind{Between},
		"run iostat -x 1 and systemd-cgtop while pods start to find the busy disk or cgroup, unless the verdict names " +
			"a program to speed up",
	},
	{
		CauseHook, "OCI hook",
		[]PartKind{Between},
		"fix the hook, or remove it from the runtime's base specification or from its CDI file (/etc/cdi, " +
			"/var/run/cdi)",
	},
	{
		CauseNRI, "NRI plugin",
		[]PartKind{Between},
		"read the plugin's log of that time; speed up its handler of that request, or stop the plugin",
	},
}

// Account is how the time of one kind is reported.
type Account struct {
	Kind PartKind
	// Cause is that of a slow call without a verdict.
	Cause Cause
	// Time is an attribute, absent when zero unless Always is set.
	Time   func(time.Duration) attribute.KeyValue
	Always bool
}

// Accounts lists all kinds, ordered by attribute. Their times sum to a call's wall time.
func Accounts() []Account {
	return []Account{
		{Commands, CauseCommand, attr.TimeCommandsMS, true},
		{Plugins, CausePlugin, attr.TimePluginsMS, true},
		{Between, CauseRuntime, attr.TimeBetweenRunsMS, true},
		{Unexplained, CauseUnexplained, attr.TimeUnexplainedMS, true},
		{Locks, CauseLock, attr.TimeLocksMS, false},
		{KernelLocks, CauseKernelLock, attr.TimeKernelLocksMS, false},
		{Network, CauseNetwork, attr.TimeNetworkMS, false},
		{SystemCalls, CauseSystemCall, attr.TimeSystemCallsMS, false},
		{Halts, CauseHalted, attr.TimeStoppedMS, false},
		{DAD, CauseDAD, attr.TimeDADMS, false},
		{Agents, CauseAgent, attr.TimeAgentMS, false},
		{Sleep, CauseSleep, attr.TimeSleepMS, false},
		{Waiting, CauseUnexplained, attr.TimeWaitingMS, false},
		{Unconfirmed, CauseUnexplained, attr.TimeUnconfirmedMS, false},
	}
}

// Cause returns the cause of a kind.
func (k PartKind) Cause() Cause {
	for _, a := range Accounts() {
		if a.Kind == k {
			return a.Cause
		}
	}
	return CauseUnexplained
}
