package judge

import "slices"

// About is what holds of a cause whatever the call, for sums over many calls.
type About struct {
	Cause Cause
	// Name is the cause in a few words of plain English.
	Name string
	// Parts are the kinds of parts whose time a verdict of this cause accounts for. None for causes
	// that take no time.
	Parts []PartKind
	// Remedy is what to do about it where nothing is known of the single call: a verdict's own, which
	// names processes and files, is better.
	Remedy string
}

// remedy is what to do about a cause in general; empty where there is no general advice.
func (c Cause) remedy() string { return c.About().Remedy }

// About returns what holds of a cause in general. Of an unknown one, as of a newer version, it is the name alone.
func (c Cause) About() About {
	all := Causes()
	if i := slices.IndexFunc(all, func(a About) bool { return a.Cause == c }); i >= 0 {
		return all[i]
	}
	return About{Cause: c, Name: string(c)}
}

// Causes lists all causes: the one place for what is to be done about each in general.
func Causes() []About {
	return slices.Concat(causesInside(), causesOfAgents(), causesElsewhere())
}

// Cause returns what time in such a part is put down to where a call has no verdict, but was slow in it.
func (k PartKind) Cause() Cause {
	switch k {
	case Locks:
		return CauseLock
	case KernelLocks:
		return CauseKernelLock
	case Network:
		return CauseNetwork
	case SystemCalls:
		return CauseSystemCall
	case DAD:
		return CauseDAD
	case Agents:
		return CauseAgent
	case Sleep:
		return CauseSleep
	case Commands:
		return CauseCommand
	case Plugins:
		return CausePlugin
	case Between:
		return CauseRuntime
	}
	return CauseUnexplained
}

// causesInside are those that lie in a plugin, or in what it runs and waits for.
func causesInside() []About {
	return []About{
		{CauseLock, "file lock", []PartKind{Locks}, "let whoever holds the lock hold it for less time: kube-proxy in mode nftables, or with a longer minSyncPeriod; for host-local a smaller range, or its dataDir on tmpfs"},
		{CauseKernelLock, "kernel lock", []PartKind{KernelLocks}, "fewer pods at once, or plugins that change less for each pod"},
		{CauseDAD, "IPv6 DAD", []PartKind{DAD}, "addresses that IPAM hands out once need no detection: switch it off (bridge: enabledad = false; else net.ipv6.conf.default.accept_dad = 0 in the pod's namespace)"},
		{CauseRetry, "iptables retry", []PartKind{Sleep, Commands}, "iptables 1.8.8 or later, with --wait, waits for the lock itself and no longer than it must; let what has the lock do less at once, or use the nft backend, which needs no lock"},
		{CauseCommands, "many commands", []PartKind{Commands}, atOnce("")},
		{CauseCommand, "slow command", []PartKind{Commands, Agents}, instead("")},
		{CausePowerShell, "PowerShell", []PartKind{Commands}, "each start loads .NET and its modules anew: use " + native("powershell") + ", or keep one running"},
		{CauseScan, "host-local scan", []PartKind{Plugins, SystemCalls}, "smaller ranges, a faster disk (dataDir on tmpfs), or delete what pods that are gone left in its folder"},
		{CauseSleep, "sleep", []PartKind{Sleep}, "a plugin that sleeps is polling for something, or retrying: the trace shows what it did before and after each sleep; have that come sooner, or shorten the interval if its configuration has one"},
		{CausePlugin, "plugin's own work", []PartKind{Plugins}, "more CPU time for it (the node's, or a CPU limit of the runtime's cgroup), or less to compute: perf record -a -g while a pod starts shows its authors where"},
		{CauseLeakedChild, "leaked child process", []PartKind{Waiting, Between}, "the plugin must give what it leaves behind another standard output, or wait for it"},
		{CauseFailed, "plugin error", nil, ""},
		{CauseMissing, "missing plugin", nil, "check that its binary is in the runtime's CNI bin folder and executable: cniscope doctor"},
	}
}

// causesOfAgents are those that lie behind a plugin's connection.
func causesOfAgents() []About {
	of := []PartKind{Agents}
	return []About{
		{CauseAgent, "slow agent", of, "check what the agent logged at that time (kubectl logs --timestamps); if it has a CPU limit, and nr_throttled in its cgroup's cpu.stat grows, raise the limit"},
		{CausePeer, "behind the agent", of, "check who the agent waited for, which the trace names below its connection: its state, its CPU limit, and what it logged at that time"},
		{CauseStopped, "stopped agent", of, "if /proc/PID/status of the agent says State: T, kill -CONT PID resumes it; if its cgroup is frozen, write 0 to its cgroup.freeze"},
		{CauseIdle, "idle agent", of, "if the agent's log says that it limits how often its API may be called, raise the limit (Cilium: --api-rate-limit), or start fewer pods at once"},
		{CauseBusy, "busy agent", of, "fewer pods at once, or a higher limit of the agent (Cilium: --api-rate-limit)"},
		{CauseRefused, "agent not answering", of, "get the agent's pod to run (kubectl logs --previous says why it ended), or correct the address in the plugin's configuration"},
		{CauseEnded, "agent ended", of, "get the agent to run again: its last lines (kubectl logs --previous) and its exit code (kubectl describe pod: Last State) say why it ended"},
		{CauseRestarted, "agent restarted", of, "if the agent was not restarted on purpose (kubectl rollout), its last lines (kubectl logs --previous) and its exit code (kubectl describe pod: Last State) say why"},
		{CauseOOM, "agent out of memory", of, "raise the agent's memory limit (resources.limits.memory) or, if the whole node ran out, move pods off it"},
		{CauseAPIServer, "API server", of, "kubectl get --raw '/readyz?verbose' says whether the API server is well; if it is, raise the limit of the plugin's client (QPS, burst), or use an IPAM that asks less often (whereabouts: all nodes wait for one lease)"},
	}
}

// causesElsewhere are those that lie in the kernel, in the runtime, or nobody knows where.
func causesElsewhere() []About {
	return []About{
		{CauseStarved, "CPU starved", []PartKind{Plugins, Commands, Between, Unexplained}, "the CPUs have too much to do: look at the node's load, at a CPU limit of the runtime's cgroup, at pods that start all at once"},
		{CauseNetwork, "network configuration", []PartKind{Network}, "a module that the request needs can be loaded at boot (/etc/modules-load.d), a bridge with very many ports divided; the trace has the request and its interface"},
		{CauseMount, "mount", []PartKind{SystemCalls}, "the kernel waits for that file system, and so does stat of a file there: restart what serves it (FUSE, a CSI driver) or bring its server back (NFS), thaw it if it is frozen (fsfreeze -u), or unmount it (umount -l)"},
		{CauseSystemCall, "system call", []PartKind{SystemCalls}, "the disk is slow, or others write much to it"},
		{CauseRuntime, "runtime", []PartKind{Between}, "the runtime's log of that time says what it did between two plugins; its own spans, too, if it has any ([relay] listen)"},
		{CauseUnexplained, "unexplained", []PartKind{Unexplained, Waiting}, `[probe] detail = "auto" or "always" looks into plugins`},
	}
}
