// Code generated from registry/cniscope.yaml. DO NOT EDIT.

package attr

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
)

// What KindKey can be.
const (
	KindOperation       = "operation"        // `pod network setup`, `pod network teardown`, `pod network check`
	KindCall            = "call"             // `CNI ADD`, `CNI DEL` …
	KindHung            = "hung"             // `CNI ADD hung` …
	KindRun             = "run"              // `bridge ADD`, `portmap ADD` …
	KindDelegate        = "delegate"         // `host-local ADD` …
	KindCommand         = "command"          // `iptables` …
	KindInterface       = "interface"        // `configure interface`
	KindRequest         = "request"          // `netlink RTM_NEWLINK`, `ioctl SIOCBRADDIF`, `iptables …`, `load program cil_from_contai (sched_cls)`
	KindSysctl          = "sysctl"           // `write sysctl`
	KindMount           = "mount"            // `mount`, `unmount`
	KindLock            = "lock"             // `wait for lock`
	KindDAD             = "dad"              // `wait for IPv6 DAD`
	KindAgent           = "agent"            // `call agent`, `call peer`
	KindWait            = "wait"             // `sleep`, `system call`, `stopped`, `frozen`, `poll for file`
	KindFirstConnection = "first_connection" // `first connection`
	KindWorkAfter       = "work_after"       // `work after ADD`
	KindStart           = "start"            // `sandbox start`
	KindStep            = "step"             // `runc create`
	KindOutage          = "outage"           // `node network not ready`
	KindBringUp         = "bring_up"         // `node bring-up`
	KindTest            = "test"             // `cniscope doctor`
)

// KindKey is cniscope.kind: Kind of the span: the second column of the table of spans.
const KindKey = attribute.Key("cniscope.kind")

func Kind(v string) attribute.KeyValue { return KindKey.String(v) }

// SandboxIDKey is sandbox.id: Id of the pod's sandbox, CNI_CONTAINERID. containerd's own spans carry the same key, as an attribute of the span.
const SandboxIDKey = attribute.Key("sandbox.id")

func SandboxID(v string) attribute.KeyValue { return SandboxIDKey.String(v) }

// LinkKey is cniscope.link: On a link: why the two spans belong together. See Links.
const LinkKey = attribute.Key("cniscope.link")

func Link(v string) attribute.KeyValue { return LinkKey.String(v) }

// CNIIfNameKey is cni.ifname: CNI_IFNAME. containerd's own spans carry the same key.
const CNIIfNameKey = attribute.Key("cni.ifname")

func CNIIfName(v string) attribute.KeyValue { return CNIIfNameKey.String(v) }

// CNINameKey is cni.name: Name of the network, where the configuration leaves no doubt. containerd's own spans carry the same key.
const CNINameKey = attribute.Key("cni.name")

func CNIName(v string) attribute.KeyValue { return CNINameKey.String(v) }

// CNICommandKey is cni.command: CNI_COMMAND of the run.
const CNICommandKey = attribute.Key("cni.command")

func CNICommand(v string) attribute.KeyValue { return CNICommandKey.String(v) }

// CNIPluginKey is cni.plugin: Plugin of the run; in a failed call's span, see `cniscope.failed_plugin`.
const CNIPluginKey = attribute.Key("cni.plugin")

func CNIPlugin(v string) attribute.KeyValue { return CNIPluginKey.String(v) }

// NetNSPathKey is netns.path: CNI_NETNS. containerd's own spans carry the same key.
const NetNSPathKey = attribute.Key("netns.path")

func NetNSPath(v string) attribute.KeyValue { return NetNSPathKey.String(v) }

// CNIIDKey is cni.id: CNI_CONTAINERID, by the key of go-cni's spans (`cni.Setup`, `cni.Remove`, `cni.Check`).
const CNIIDKey = attribute.Key("cni.id")

func CNIID(v string) attribute.KeyValue { return CNIIDKey.String(v) }

// CNIPathKey is cni.path: CNI_NETNS, by the key of go-cni's spans. It is not CNI_PATH.
const CNIPathKey = attribute.Key("cni.path")

func CNIPath(v string) attribute.KeyValue { return CNIPathKey.String(v) }

// VerdictKey is cniscope.verdict: Why the call was slow, failed or hung, in one sentence. Absent from an ordinary call.
const VerdictKey = attribute.Key("cniscope.verdict")

func Verdict(v string) attribute.KeyValue { return VerdictKey.String(v) }

// CauseKey is cniscope.cause: The verdict in one word; [verdicts.md](verdicts.md) lists them.
const CauseKey = attribute.Key("cniscope.cause")

func Cause(v string) attribute.KeyValue { return CauseKey.String(v) }

// RemedyKey is cniscope.remedy: Remedy.
const RemedyKey = attribute.Key("cniscope.remedy")

func Remedy(v string) attribute.KeyValue { return RemedyKey.String(v) }

// ReportKey is cniscope.report: Public report of such a case.
const ReportKey = attribute.Key("cniscope.report")

func Report(v string) attribute.KeyValue { return ReportKey.String(v) }

// BiggestPartKey is cniscope.biggest_part: What the call spent most of its time on.
const BiggestPartKey = attribute.Key("cniscope.biggest_part")

func BiggestPart(v string) attribute.KeyValue { return BiggestPartKey.String(v) }

// BiggestPartNameKey is cniscope.biggest_part_name: The same in few words, without counts and lock holders, to group calls.
const BiggestPartNameKey = attribute.Key("cniscope.biggest_part_name")

func BiggestPartName(v string) attribute.KeyValue { return BiggestPartNameKey.String(v) }

// BiggestPartMSKey is cniscope.biggest_part_ms: Duration of the biggest part.
const BiggestPartMSKey = attribute.Key("cniscope.biggest_part_ms")

func BiggestPartMS(v time.Duration) attribute.KeyValue {
	return BiggestPartMSKey.Float64(milliseconds(v))
}

// TimeCommandsMSKey is cniscope.time.commands_ms: Time in commands.
const TimeCommandsMSKey = attribute.Key("cniscope.time.commands_ms")

func TimeCommandsMS(v time.Duration) attribute.KeyValue {
	return TimeCommandsMSKey.Float64(milliseconds(v))
}

// TimePluginsMSKey is cniscope.time.plugins_ms: Time in which a plugin used a CPU or waited for a CPU.
const TimePluginsMSKey = attribute.Key("cniscope.time.plugins_ms")

func TimePluginsMS(v time.Duration) attribute.KeyValue {
	return TimePluginsMSKey.Float64(milliseconds(v))
}

// TimeBetweenRunsMSKey is cniscope.time.between_runs_ms: Time between two runs, in the runtime.
const TimeBetweenRunsMSKey = attribute.Key("cniscope.time.between_runs_ms")

func TimeBetweenRunsMS(v time.Duration) attribute.KeyValue {
	return TimeBetweenRunsMSKey.Float64(milliseconds(v))
}

// TimeUnexplainedMSKey is cniscope.time.unexplained_ms: Time inside a plugin without an explanation.
const TimeUnexplainedMSKey = attribute.Key("cniscope.time.unexplained_ms")

func TimeUnexplainedMS(v time.Duration) attribute.KeyValue {
	return TimeUnexplainedMSKey.Float64(milliseconds(v))
}

// TimeLocksMSKey is cniscope.time.locks_ms: Time waiting for locks on files.
const TimeLocksMSKey = attribute.Key("cniscope.time.locks_ms")

func TimeLocksMS(v time.Duration) attribute.KeyValue { return TimeLocksMSKey.Float64(milliseconds(v)) }

// TimeKernelLocksMSKey is cniscope.time.kernel_locks_ms: Time waiting for the kernel's own locks.
const TimeKernelLocksMSKey = attribute.Key("cniscope.time.kernel_locks_ms")

func TimeKernelLocksMS(v time.Duration) attribute.KeyValue {
	return TimeKernelLocksMSKey.Float64(milliseconds(v))
}

// TimeNetworkMSKey is cniscope.time.network_ms: Time in which the kernel worked on requests or sysctls.
const TimeNetworkMSKey = attribute.Key("cniscope.time.network_ms")

func TimeNetworkMS(v time.Duration) attribute.KeyValue {
	return TimeNetworkMSKey.Float64(milliseconds(v))
}

// TimeSystemCallsMSKey is cniscope.time.system_calls_ms: Time blocked in other system calls.
const TimeSystemCallsMSKey = attribute.Key("cniscope.time.system_calls_ms")

func TimeSystemCallsMS(v time.Duration) attribute.KeyValue {
	return TimeSystemCallsMSKey.Float64(milliseconds(v))
}

// TimeStoppedMSKey is cniscope.time.stopped_ms: Time in which a plugin or a command was stopped, traced or frozen; sampled.
const TimeStoppedMSKey = attribute.Key("cniscope.time.stopped_ms")

func TimeStoppedMS(v time.Duration) attribute.KeyValue {
	return TimeStoppedMSKey.Float64(milliseconds(v))
}

// TimeDADMSKey is cniscope.time.dad_ms: Time waiting for IPv6 duplicate address detection.
const TimeDADMSKey = attribute.Key("cniscope.time.dad_ms")

func TimeDADMS(v time.Duration) attribute.KeyValue { return TimeDADMSKey.Float64(milliseconds(v)) }

// TimeAgentMSKey is cniscope.time.agent_ms: Time waiting for an agent.
const TimeAgentMSKey = attribute.Key("cniscope.time.agent_ms")

func TimeAgentMS(v time.Duration) attribute.KeyValue { return TimeAgentMSKey.Float64(milliseconds(v)) }

// TimeSleepMSKey is cniscope.time.sleep_ms: Time asleep.
const TimeSleepMSKey = attribute.Key("cniscope.time.sleep_ms")

func TimeSleepMS(v time.Duration) attribute.KeyValue { return TimeSleepMSKey.Float64(milliseconds(v)) }

// TimeWaitingMSKey is cniscope.time.waiting_ms: Time waiting for files, threads or children, whichever came first.
const TimeWaitingMSKey = attribute.Key("cniscope.time.waiting_ms")

func TimeWaitingMS(v time.Duration) attribute.KeyValue {
	return TimeWaitingMSKey.Float64(milliseconds(v))
}

// TimeUnconfirmedMSKey is cniscope.time.unconfirmed_ms: Time that an agent spent, possibly for another call. No other part includes it.
const TimeUnconfirmedMSKey = attribute.Key("cniscope.time.unconfirmed_ms")

func TimeUnconfirmedMS(v time.Duration) attribute.KeyValue {
	return TimeUnconfirmedMSKey.Float64(milliseconds(v))
}

// CommandsKey is cniscope.commands: Number of commands that the call ran.
const CommandsKey = attribute.Key("cniscope.commands")

func Commands(v int) attribute.KeyValue { return CommandsKey.Int(v) }

// SlowCommandsKey is cniscope.slow_commands: Number of commands that took longer than `slow.command`.
const SlowCommandsKey = attribute.Key("cniscope.slow_commands")

func SlowCommands(v int) attribute.KeyValue { return SlowCommandsKey.Int(v) }

// SlowAgentsKey is cniscope.slow_agents: Number of connections to agents that took longer than `slow.agent`.
const SlowAgentsKey = attribute.Key("cniscope.slow_agents")

func SlowAgents(v int) attribute.KeyValue { return SlowAgentsKey.Int(v) }

// SlowLocksKey is cniscope.slow_locks: Number of waits for a lock that took longer than `slow.lock`.
const SlowLocksKey = attribute.Key("cniscope.slow_locks")

func SlowLocks(v int) attribute.KeyValue { return SlowLocksKey.Int(v) }

// ConcurrentCallsKey is cniscope.concurrent_calls: Largest number of other calls in progress on the node during the call.
const ConcurrentCallsKey = attribute.Key("cniscope.concurrent_calls")

func ConcurrentCalls(v int) attribute.KeyValue { return ConcurrentCallsKey.Int(v) }

// SystemCallsSeenKey is cniscope.system_calls_seen: System calls of the call's plugins were observed, for at least part of the time.
const SystemCallsSeenKey = attribute.Key("cniscope.system_calls_seen")

func SystemCallsSeen(v bool) attribute.KeyValue { return SystemCallsSeenKey.Bool(v) }

// FirstConnectionMSKey is cniscope.first_connection_ms: Time from the end of the ADD to the pod's first TCP connection.
const FirstConnectionMSKey = attribute.Key("cniscope.first_connection_ms")

func FirstConnectionMS(v time.Duration) attribute.KeyValue {
	return FirstConnectionMSKey.Float64(milliseconds(v))
}

// CutKey is cniscope.cut: Number of facts of one kind (`bytes`, `requests`, `waits`, `connections`, `exchanges`, `addresses`, `sysctls`, `other`) dropped because a limit was reached.
const CutKey = attribute.Key("cniscope.cut")

func Cut(of string, v int) attribute.KeyValue { return attribute.Int(string(CutKey)+"."+of, v) }

// FailedKey is cniscope.failed: The call failed: as the status says, for backends that search attributes only.
const FailedKey = attribute.Key("cniscope.failed")

func Failed(v bool) attribute.KeyValue { return FailedKey.Bool(v) }

// FailedPluginKey is cniscope.failed_plugin: Plugin that failed the call.
const FailedPluginKey = attribute.Key("cniscope.failed_plugin")

func FailedPlugin(v string) attribute.KeyValue { return FailedPluginKey.String(v) }

// NeverRunKey is cniscope.never_run: Plugins of the chain that were not reached.
const NeverRunKey = attribute.Key("cniscope.never_run")

func NeverRun(v ...string) attribute.KeyValue { return NeverRunKey.StringSlice(v) }

// BaggageKey is cniscope.baggage: Members of the runtime's baggage, as `key=value` (`trace.baggage`).
const BaggageKey = attribute.Key("cniscope.baggage")

func Baggage(v ...string) attribute.KeyValue { return BaggageKey.StringSlice(v) }

// ReducedKey is cniscope.reduced: Only the call's own span was kept (`sampling.per_second`).
const ReducedKey = attribute.Key("cniscope.reduced")

func Reduced(v bool) attribute.KeyValue { return ReducedKey.Bool(v) }

// PartialKey is cniscope.partial: Not everything was observed.
const PartialKey = attribute.Key("cniscope.partial")

func Partial(v bool) attribute.KeyValue { return PartialKey.Bool(v) }

// PartialReasonKey is cniscope.partial_reason: Why not everything was observed.
const PartialReasonKey = attribute.Key("cniscope.partial_reason")

func PartialReason(v string) attribute.KeyValue { return PartialReasonKey.String(v) }

// LostEventsKey is cniscope.lost_events: Number of events that were lost.
const LostEventsKey = attribute.Key("cniscope.lost_events")

func LostEvents(v int) attribute.KeyValue { return LostEventsKey.Int(v) }

// DroppedImagesKey is cniscope.dropped_images: Number of processes' images dropped because `limits.images` was reached.
const DroppedImagesKey = attribute.Key("cniscope.dropped_images")

func DroppedImages(v int) attribute.KeyValue { return DroppedImagesKey.Int(v) }

// HungKey is cniscope.hung: The call was in progress for longer than `slow.hung`.
const HungKey = attribute.Key("cniscope.hung")

func Hung(v bool) attribute.KeyValue { return HungKey.Bool(v) }

// AgeMSKey is cniscope.age_ms: Age of the call when the span was made.
const AgeMSKey = attribute.Key("cniscope.age_ms")

func AgeMS(v time.Duration) attribute.KeyValue { return AgeMSKey.Float64(milliseconds(v)) }

// SlowKey is cniscope.slow: The span lasted longer than its threshold.
const SlowKey = attribute.Key("cniscope.slow")

func Slow(v bool) attribute.KeyValue { return SlowKey.Bool(v) }

// SlowThresholdMSKey is cniscope.slow_threshold_ms: Threshold that the span exceeded.
const SlowThresholdMSKey = attribute.Key("cniscope.slow_threshold_ms")

func SlowThresholdMS(v time.Duration) attribute.KeyValue {
	return SlowThresholdMSKey.Float64(milliseconds(v))
}

// ClosedKey is cniscope.closed: Why cniscope considered the operation finished.
const ClosedKey = attribute.Key("cniscope.closed")

func Closed(v string) attribute.KeyValue { return ClosedKey.String(v) }

// AttemptKey is cniscope.attempt: Which attempt to set up the same pod this is; absent from the first.
const AttemptKey = attribute.Key("cniscope.attempt")

func Attempt(v int) attribute.KeyValue { return AttemptKey.Int(v) }

// SandboxRunningKey is cniscope.sandbox_running: NRI reported the sandbox as running.
const SandboxRunningKey = attribute.Key("cniscope.sandbox_running")

func SandboxRunning(v bool) attribute.KeyValue { return SandboxRunningKey.Bool(v) }

// SecondIPKey is cniscope.second_ip: The pod's second address.
const SecondIPKey = attribute.Key("cniscope.second_ip")

func SecondIP(v string) attribute.KeyValue { return SecondIPKey.String(v) }

// RuntimeHandlerKey is runtime.handler: Runtime handler of the sandbox, by its RuntimeClass. containerd's own spans carry the same key.
const RuntimeHandlerKey = attribute.Key("runtime.handler")

func RuntimeHandler(v string) attribute.KeyValue { return RuntimeHandlerKey.String(v) }

// StepKey is cniscope.step: `shim`, `oci_runtime`, `hook` (OCI) or `command`.
const StepKey = attribute.Key("cniscope.step")

func Step(v string) attribute.KeyValue { return StepKey.String(v) }

// HiddenArgumentsKey is cniscope.hidden_arguments: Number of arguments that the allow-list held back.
const HiddenArgumentsKey = attribute.Key("cniscope.hidden_arguments")

func HiddenArguments(v int) attribute.KeyValue { return HiddenArgumentsKey.Int(v) }

// CallersKey is cniscope.callers: Function in `code.function.name` and its callers, innermost first, up to 8, without the standard library.
const CallersKey = attribute.Key("cniscope.callers")

func Callers(v ...string) attribute.KeyValue { return CallersKey.StringSlice(v) }

// SignalKey is cniscope.signal: Signal that killed the process.
const SignalKey = attribute.Key("cniscope.signal")

func Signal(v string) attribute.KeyValue { return SignalKey.String(v) }

// CPUMSKey is cniscope.cpu_ms: Time on a CPU.
const CPUMSKey = attribute.Key("cniscope.cpu_ms")

func CPUMS(v time.Duration) attribute.KeyValue { return CPUMSKey.Float64(milliseconds(v)) }

// RunDelayMSKey is cniscope.run_delay_ms: Time runnable, waiting for a CPU.
const RunDelayMSKey = attribute.Key("cniscope.run_delay_ms")

func RunDelayMS(v time.Duration) attribute.KeyValue { return RunDelayMSKey.Float64(milliseconds(v)) }

// NetNSInodeKey is cniscope.netns_inode: Inode of the network namespace that it happened in.
const NetNSInodeKey = attribute.Key("cniscope.netns_inode")

func NetNSInode(v string) attribute.KeyValue { return NetNSInodeKey.String(v) }

// NetNSInodeAtExitKey is cniscope.netns_inode_at_exit: Inode of the network namespace at exit, if the process had switched.
const NetNSInodeAtExitKey = attribute.Key("cniscope.netns_inode_at_exit")

func NetNSInodeAtExit(v string) attribute.KeyValue { return NetNSInodeAtExitKey.String(v) }

// NetNSInodeEnteredKey is cniscope.netns_inode_entered: Inode of the first network namespace entered that was not the process's own.
const NetNSInodeEnteredKey = attribute.Key("cniscope.netns_inode_entered")

func NetNSInodeEntered(v string) attribute.KeyValue { return NetNSInodeEnteredKey.String(v) }

// NetNSSwitchesKey is cniscope.netns_switches: Number of times that it entered a network namespace.
const NetNSSwitchesKey = attribute.Key("cniscope.netns_switches")

func NetNSSwitches(v int) attribute.KeyValue { return NetNSSwitchesKey.Int(v) }

// ReplacedKey is cniscope.replaced: The image ended because the process executed another one.
const ReplacedKey = attribute.Key("cniscope.replaced")

func Replaced(v bool) attribute.KeyValue { return ReplacedKey.Bool(v) }

// OutlivedKey is cniscope.outlived: The process outlived its run.
const OutlivedKey = attribute.Key("cniscope.outlived")

func Outlived(v bool) attribute.KeyValue { return OutlivedKey.Bool(v) }

// UnfinishedKey is cniscope.unfinished: The process was still running when the operation was closed.
const UnfinishedKey = attribute.Key("cniscope.unfinished")

func Unfinished(v bool) attribute.KeyValue { return UnfinishedKey.Bool(v) }

// EndUnseenKey is cniscope.end_unseen: The process ended, but its exit was not observed.
const EndUnseenKey = attribute.Key("cniscope.end_unseen")

func EndUnseen(v bool) attribute.KeyValue { return EndUnseenKey.Bool(v) }

// InFlightAtStartKey is cniscope.in_flight_at_start: The process was running before cniscope.
const InFlightAtStartKey = attribute.Key("cniscope.in_flight_at_start")

func InFlightAtStart(v bool) attribute.KeyValue { return InFlightAtStartKey.Bool(v) }

// UnidentifiedKey is cniscope.unidentified: The process had ended before it was looked at; what it ran is not known.
const UnidentifiedKey = attribute.Key("cniscope.unidentified")

func Unidentified(v bool) attribute.KeyValue { return UnidentifiedKey.Bool(v) }

// SourceKey is cniscope.source: How cniscope observes processes: `bpf`, `bpf-commands` (no system calls), `connector`, `etw` or `snapshots`.
const SourceKey = attribute.Key("cniscope.source")

func Source(v string) attribute.KeyValue { return SourceKey.String(v) }

// SourceResolutionMSKey is cniscope.source.resolution_ms: Interval of snapshots: a process with a shorter life may be missed. Only with `snapshots`.
const SourceResolutionMSKey = attribute.Key("cniscope.source.resolution_ms")

func SourceResolutionMS(v time.Duration) attribute.KeyValue {
	return SourceResolutionMSKey.Float64(milliseconds(v))
}

// TruncatedKey is cniscope.truncated: Name or arguments were cut.
const TruncatedKey = attribute.Key("cniscope.truncated")

func Truncated(v bool) attribute.KeyValue { return TruncatedKey.Bool(v) }

// FoldedCountKey is cniscope.folded.count: Number of commands that the span stands for, where `trace.fold_commands` made one span of a series.
const FoldedCountKey = attribute.Key("cniscope.folded.count")

func FoldedCount(v int) attribute.KeyValue { return FoldedCountKey.Int(v) }

// FoldedSumMSKey is cniscope.folded.sum_ms: How long they took in all. The span itself is from the first start to the last end.
const FoldedSumMSKey = attribute.Key("cniscope.folded.sum_ms")

func FoldedSumMS(v time.Duration) attribute.KeyValue { return FoldedSumMSKey.Float64(milliseconds(v)) }

// FoldedWorstMSKey is cniscope.folded.worst_ms: How long the longest of them took.
const FoldedWorstMSKey = attribute.Key("cniscope.folded.worst_ms")

func FoldedWorstMS(v time.Duration) attribute.KeyValue {
	return FoldedWorstMSKey.Float64(milliseconds(v))
}

// FoldedWorstArgsKey is cniscope.folded.worst_args: Arguments of the longest one.
const FoldedWorstArgsKey = attribute.Key("cniscope.folded.worst_args")

func FoldedWorstArgs(v ...string) attribute.KeyValue { return FoldedWorstArgsKey.StringSlice(v) }

// FoldedExitCodesKey is cniscope.folded.exit_codes: How many ended with an exit code, or by a signal: `cniscope.folded.exit_codes.0`, `cniscope.folded.exit_codes.SIGPIPE`.
const FoldedExitCodesKey = attribute.Key("cniscope.folded.exit_codes")

func FoldedExitCodes(of string, v int) attribute.KeyValue {
	return attribute.Int(string(FoldedExitCodesKey)+"."+of, v)
}

// LocksKey is cniscope.locks: Number of times that it asked for a lock on a file.
const LocksKey = attribute.Key("cniscope.locks")

func Locks(v int) attribute.KeyValue { return LocksKey.Int(v) }

// LockWaitMSKey is cniscope.lock_wait_ms: Time it waited for locks on files.
const LockWaitMSKey = attribute.Key("cniscope.lock_wait_ms")

func LockWaitMS(v time.Duration) attribute.KeyValue { return LockWaitMSKey.Float64(milliseconds(v)) }

// KernelLocksKey is cniscope.kernel_locks: Number of waits of 0.1 ms or longer for a lock of the kernel's own.
const KernelLocksKey = attribute.Key("cniscope.kernel_locks")

func KernelLocks(v int) attribute.KeyValue { return KernelLocksKey.Int(v) }

// KernelLockWaitMSKey is cniscope.kernel_lock_wait_ms: Time it waited for the kernel's own locks.
const KernelLockWaitMSKey = attribute.Key("cniscope.kernel_lock_wait_ms")

func KernelLockWaitMS(v time.Duration) attribute.KeyValue {
	return KernelLockWaitMSKey.Float64(milliseconds(v))
}

// RequestsKey is cniscope.requests: Number of requests to the kernel's network configuration.
const RequestsKey = attribute.Key("cniscope.requests")

func Requests(v int) attribute.KeyValue { return RequestsKey.Int(v) }

// ChangesKey is cniscope.changes: Number of requests that change something.
const ChangesKey = attribute.Key("cniscope.changes")

func Changes(v int) attribute.KeyValue { return ChangesKey.Int(v) }

// QueriesKey is cniscope.queries: Number of queries.
const QueriesKey = attribute.Key("cniscope.queries")

func Queries(v int) attribute.KeyValue { return QueriesKey.Int(v) }

// RequestMSKey is cniscope.request_ms: Time the kernel spent on requests.
const RequestMSKey = attribute.Key("cniscope.request_ms")

func RequestMS(v time.Duration) attribute.KeyValue { return RequestMSKey.Float64(milliseconds(v)) }

// SysctlsKey is cniscope.sysctls: Number of sysctls written.
const SysctlsKey = attribute.Key("cniscope.sysctls")

func Sysctls(v int) attribute.KeyValue { return SysctlsKey.Int(v) }

// SysctlMSKey is cniscope.sysctl_ms: Time spent writing sysctls.
const SysctlMSKey = attribute.Key("cniscope.sysctl_ms")

func SysctlMS(v time.Duration) attribute.KeyValue { return SysctlMSKey.Float64(milliseconds(v)) }

// SystemCallsKey is cniscope.system_calls: Number of other system calls in which a thread was blocked.
const SystemCallsKey = attribute.Key("cniscope.system_calls")

func SystemCalls(v int) attribute.KeyValue { return SystemCallsKey.Int(v) }

// SystemCallMSKey is cniscope.system_call_ms: Time blocked in them.
const SystemCallMSKey = attribute.Key("cniscope.system_call_ms")

func SystemCallMS(v time.Duration) attribute.KeyValue {
	return SystemCallMSKey.Float64(milliseconds(v))
}

// SleepMSKey is cniscope.sleep_ms: Time in which at least one thread slept.
const SleepMSKey = attribute.Key("cniscope.sleep_ms")

func SleepMS(v time.Duration) attribute.KeyValue { return SleepMSKey.Float64(milliseconds(v)) }

// PollMSKey is cniscope.poll_ms: Time in which at least one thread waited for whatever came first.
const PollMSKey = attribute.Key("cniscope.poll_ms")

func PollMS(v time.Duration) attribute.KeyValue { return PollMSKey.Float64(milliseconds(v)) }

// ConnectionsKey is cniscope.connections: Number of connections to agents.
const ConnectionsKey = attribute.Key("cniscope.connections")

func Connections(v int) attribute.KeyValue { return ConnectionsKey.Int(v) }

// ExchangesKey is cniscope.exchanges: Number of exchanges of `limits.min_span` or longer on connections that were there before.
const ExchangesKey = attribute.Key("cniscope.exchanges")

func Exchanges(v int) attribute.KeyValue { return ExchangesKey.Int(v) }

// CNIVersionKey is cni.version: cniVersion of the configuration on standard input.
const CNIVersionKey = attribute.Key("cni.version")

func CNIVersion(v string) attribute.KeyValue { return CNIVersionKey.String(v) }

// ConfiguredNetworkKey is cniscope.configured.network: Name of the network in that configuration.
const ConfiguredNetworkKey = attribute.Key("cniscope.configured.network")

func ConfiguredNetwork(v string) attribute.KeyValue { return ConfiguredNetworkKey.String(v) }

// ConfiguredTypeKey is cniscope.configured.type: Plugin type in that configuration.
const ConfiguredTypeKey = attribute.Key("cniscope.configured.type")

func ConfiguredType(v string) attribute.KeyValue { return ConfiguredTypeKey.String(v) }

// ConfiguredIPAMKey is cniscope.configured.ipam: IPAM type in that configuration.
const ConfiguredIPAMKey = attribute.Key("cniscope.configured.ipam")

func ConfiguredIPAM(v string) attribute.KeyValue { return ConfiguredIPAMKey.String(v) }

// ConfigurationInvalidKey is cniscope.configuration_invalid: Why the configuration could not be read.
const ConfigurationInvalidKey = attribute.Key("cniscope.configuration_invalid")

func ConfigurationInvalid(v string) attribute.KeyValue { return ConfigurationInvalidKey.String(v) }

// ResultIPsKey is cniscope.result.ips: Addresses in the result on standard output.
const ResultIPsKey = attribute.Key("cniscope.result.ips")

func ResultIPs(v ...string) attribute.KeyValue { return ResultIPsKey.StringSlice(v) }

// ResultInterfacesKey is cniscope.result.interfaces: Interfaces in the result.
const ResultInterfacesKey = attribute.Key("cniscope.result.interfaces")

func ResultInterfaces(v ...string) attribute.KeyValue { return ResultInterfacesKey.StringSlice(v) }

// ResultRoutesKey is cniscope.result.routes: Routes in the result.
const ResultRoutesKey = attribute.Key("cniscope.result.routes")

func ResultRoutes(v ...string) attribute.KeyValue { return ResultRoutesKey.StringSlice(v) }

// ResultVersionKey is cniscope.result.version: cniVersion of the result.
const ResultVersionKey = attribute.Key("cniscope.result.version")

func ResultVersion(v string) attribute.KeyValue { return ResultVersionKey.String(v) }

// ResultInvalidKey is cniscope.result_invalid: Why the result could not be read.
const ResultInvalidKey = attribute.Key("cniscope.result_invalid")

func ResultInvalid(v string) attribute.KeyValue { return ResultInvalidKey.String(v) }

// CNIErrorCodeKey is cni.error.code: Code of the error that the plugin wrote.
const CNIErrorCodeKey = attribute.Key("cni.error.code")

func CNIErrorCode(v int) attribute.KeyValue { return CNIErrorCodeKey.Int(v) }

// CNIErrorMessageKey is cni.error.message: Message of that error; `‹hex 64›` stands where something was that may be a secret ([what leaves](trust.md#what-leaves)).
const CNIErrorMessageKey = attribute.Key("cni.error.message")

func CNIErrorMessage(v string) attribute.KeyValue { return CNIErrorMessageKey.String(v) }

// RequestProtocolKey is cniscope.request.protocol: `rtnetlink`, `nf_tables`, `iptables`, `ioctl`, `bpf`, or another netlink family.
const RequestProtocolKey = attribute.Key("cniscope.request.protocol")

func RequestProtocol(v string) attribute.KeyValue { return RequestProtocolKey.String(v) }

// RequestNameKey is cniscope.request.name: Message or command, such as `RTM_NEWLINK` or `SIOCBRADDIF`.
const RequestNameKey = attribute.Key("cniscope.request.name")

func RequestName(v string) attribute.KeyValue { return RequestNameKey.String(v) }

// ProgramNameKey is cniscope.program.name: A BPF program or map, by as much of its name as the kernel keeps (15 letters).
const ProgramNameKey = attribute.Key("cniscope.program.name")

func ProgramName(v string) attribute.KeyValue { return ProgramNameKey.String(v) }

// ProgramTypeKey is cniscope.program.type: Its kind, such as `sched_cls` or `lru_hash`; of an attachment, where it is attached, such as `tcx_ingress`.
const ProgramTypeKey = attribute.Key("cniscope.program.type")

func ProgramType(v string) attribute.KeyValue { return ProgramTypeKey.String(v) }

// ProgramPathKey is cniscope.program.path: Where it is pinned, or the cgroup it is attached to.
const ProgramPathKey = attribute.Key("cniscope.program.path")

func ProgramPath(v string) attribute.KeyValue { return ProgramPathKey.String(v) }

// RequestPortKey is cniscope.request.port: Netlink port of the socket.
const RequestPortKey = attribute.Key("cniscope.request.port")

func RequestPort(v int) attribute.KeyValue { return RequestPortKey.Int(v) }

// RequestSequenceKey is cniscope.request.sequence: Netlink sequence number.
const RequestSequenceKey = attribute.Key("cniscope.request.sequence")

func RequestSequence(v int) attribute.KeyValue { return RequestSequenceKey.Int(v) }

// RequestCountKey is cniscope.request.count: Number of such messages sent at once, if more than one; the other attributes describe the first.
const RequestCountKey = attribute.Key("cniscope.request.count")

func RequestCount(v int) attribute.KeyValue { return RequestCountKey.Int(v) }

// ErrnoKey is cniscope.errno: Error number that the system call or request ended with, such as `EEXIST`, whether or not that made the call fail.
const ErrnoKey = attribute.Key("cniscope.errno")

func Errno(v string) attribute.KeyValue { return ErrnoKey.String(v) }

// RequestMessageKey is cniscope.request.message: What the kernel said about that (extack).
const RequestMessageKey = attribute.Key("cniscope.request.message")

func RequestMessage(v string) attribute.KeyValue { return RequestMessageKey.String(v) }

// InterfaceIndexKey is cniscope.interface.index: Index of the interface, where a request gives one.
const InterfaceIndexKey = attribute.Key("cniscope.interface.index")

func InterfaceIndex(v int) attribute.KeyValue { return InterfaceIndexKey.Int(v) }

// InterfaceKindKey is cniscope.interface.kind: Kind of the interface, such as `veth`.
const InterfaceKindKey = attribute.Key("cniscope.interface.kind")

func InterfaceKind(v string) attribute.KeyValue { return InterfaceKindKey.String(v) }

// InterfacePeerKey is cniscope.interface.peer: The other end of a veth pair.
const InterfacePeerKey = attribute.Key("cniscope.interface.peer")

func InterfacePeer(v string) attribute.KeyValue { return InterfacePeerKey.String(v) }

// InterfaceMasterKey is cniscope.interface.master: Bridge or bond that it is put under.
const InterfaceMasterKey = attribute.Key("cniscope.interface.master")

func InterfaceMaster(v string) attribute.KeyValue { return InterfaceMasterKey.String(v) }

// InterfaceMasterIndexKey is cniscope.interface.master_index: Index of that bridge or bond.
const InterfaceMasterIndexKey = attribute.Key("cniscope.interface.master_index")

func InterfaceMasterIndex(v int) attribute.KeyValue { return InterfaceMasterIndexKey.Int(v) }

// InterfaceStateKey is cniscope.interface.state: `up` or `down`.
const InterfaceStateKey = attribute.Key("cniscope.interface.state")

func InterfaceState(v string) attribute.KeyValue { return InterfaceStateKey.String(v) }

// InterfaceMTUKey is cniscope.interface.mtu: MTU, in bytes.
const InterfaceMTUKey = attribute.Key("cniscope.interface.mtu")

func InterfaceMTU(v int) attribute.KeyValue { return InterfaceMTUKey.Int(v) }

// InterfaceMACKey is cniscope.interface.mac: Link-layer address.
const InterfaceMACKey = attribute.Key("cniscope.interface.mac")

func InterfaceMAC(v string) attribute.KeyValue { return InterfaceMACKey.String(v) }

// InterfaceNetNSInodeKey is cniscope.interface.netns_inode: Inode of the network namespace that it is made in or moved to.
const InterfaceNetNSInodeKey = attribute.Key("cniscope.interface.netns_inode")

func InterfaceNetNSInode(v string) attribute.KeyValue { return InterfaceNetNSInodeKey.String(v) }

// InterfacePeerNetNSInodeKey is cniscope.interface.peer_netns_inode: The same of the other end.
const InterfacePeerNetNSInodeKey = attribute.Key("cniscope.interface.peer_netns_inode")

func InterfacePeerNetNSInode(v string) attribute.KeyValue {
	return InterfacePeerNetNSInodeKey.String(v)
}

// AddressKey is cniscope.address: An address; in a request with its prefix.
const AddressKey = attribute.Key("cniscope.address")

func Address(v string) attribute.KeyValue { return AddressKey.String(v) }

// RouteKey is cniscope.route: Destination of a route.
const RouteKey = attribute.Key("cniscope.route")

func Route(v string) attribute.KeyValue { return RouteKey.String(v) }

// GatewayKey is cniscope.gateway: Gateway of a route.
const GatewayKey = attribute.Key("cniscope.gateway")

func Gateway(v string) attribute.KeyValue { return GatewayKey.String(v) }

// RuleTableKey is cniscope.rule.table: Table of a packet filter rule, routing table, or ipset.
const RuleTableKey = attribute.Key("cniscope.rule.table")

func RuleTable(v string) attribute.KeyValue { return RuleTableKey.String(v) }

// RuleChainKey is cniscope.rule.chain: Chain of a packet filter rule.
const RuleChainKey = attribute.Key("cniscope.rule.chain")

func RuleChain(v string) attribute.KeyValue { return RuleChainKey.String(v) }

// SysctlKeyKey is cniscope.sysctl.key: Sysctl that was written.
const SysctlKeyKey = attribute.Key("cniscope.sysctl.key")

func SysctlKey(v string) attribute.KeyValue { return SysctlKeyKey.String(v) }

// SysctlValueKey is cniscope.sysctl.value: Value that was written to it.
const SysctlValueKey = attribute.Key("cniscope.sysctl.value")

func SysctlValue(v string) attribute.KeyValue { return SysctlValueKey.String(v) }

// LockPathKey is cniscope.lock.path: File that is locked.
const LockPathKey = attribute.Key("cniscope.lock.path")

func LockPath(v string) attribute.KeyValue { return LockPathKey.String(v) }

// LockNameKey is cniscope.lock.name: Name of a lock of the kernel's own.
const LockNameKey = attribute.Key("cniscope.lock.name")

func LockName(v string) attribute.KeyValue { return LockNameKey.String(v) }

// LockTriesKey is cniscope.lock.tries: Number of times that the lock was asked for, if it was refused at first.
const LockTriesKey = attribute.Key("cniscope.lock.tries")

func LockTries(v int) attribute.KeyValue { return LockTriesKey.Int(v) }

// LockPassedKey is cniscope.lock.passed: Number of others observed to hold the lock, one after another, until the wait was over.
const LockPassedKey = attribute.Key("cniscope.lock.passed")

func LockPassed(v int) attribute.KeyValue { return LockPassedKey.Int(v) }

// LockHolderNameKey is cniscope.lock.holder_name: Program that held the lock when the wait began.
const LockHolderNameKey = attribute.Key("cniscope.lock.holder_name")

func LockHolderName(v string) attribute.KeyValue { return LockHolderNameKey.String(v) }

// LockHolderPIDKey is cniscope.lock.holder_pid: PID of that program.
const LockHolderPIDKey = attribute.Key("cniscope.lock.holder_pid")

func LockHolderPID(v int) attribute.KeyValue { return LockHolderPIDKey.Int(v) }

// LockHolderParentKey is cniscope.lock.holder_parent: Program that started it.
const LockHolderParentKey = attribute.Key("cniscope.lock.holder_parent")

func LockHolderParent(v string) attribute.KeyValue { return LockHolderParentKey.String(v) }

// LockHolderAgeMSKey is cniscope.lock.holder_age_ms: How long it held the lock, until the wait ended or it let go.
const LockHolderAgeMSKey = attribute.Key("cniscope.lock.holder_age_ms")

func LockHolderAgeMS(v time.Duration) attribute.KeyValue {
	return LockHolderAgeMSKey.Float64(milliseconds(v))
}

// LockHolderAgeExactKey is cniscope.lock.holder_age_exact: False: it held the lock for at least that long.
const LockHolderAgeExactKey = attribute.Key("cniscope.lock.holder_age_exact")

func LockHolderAgeExact(v bool) attribute.KeyValue { return LockHolderAgeExactKey.Bool(v) }

// AddressStateKey is cniscope.address_state: Outcome of duplicate address detection: `ready`, `duplicate`, or `tentative` if there was none.
const AddressStateKey = attribute.Key("cniscope.address_state")

func AddressState(v string) attribute.KeyValue { return AddressStateKey.String(v) }

// SystemCallKey is cniscope.system_call: System call that blocked.
const SystemCallKey = attribute.Key("cniscope.system_call")

func SystemCall(v string) attribute.KeyValue { return SystemCallKey.String(v) }

// MountTargetKey is cniscope.mount.target: Where it was mounted, or what was unmounted.
const MountTargetKey = attribute.Key("cniscope.mount.target")

func MountTarget(v string) attribute.KeyValue { return MountTargetKey.String(v) }

// MountFstypeKey is cniscope.mount.fstype: Type of the file system; absent from bind mounts and unmounts.
const MountFstypeKey = attribute.Key("cniscope.mount.fstype")

func MountFstype(v string) attribute.KeyValue { return MountFstypeKey.String(v) }

// MountSourceKey is cniscope.mount.source: What was mounted: a path, a device, or what the file system takes for one.
const MountSourceKey = attribute.Key("cniscope.mount.source")

func MountSource(v string) attribute.KeyValue { return MountSourceKey.String(v) }

// MountFlagsKey is cniscope.mount.flags: Flags as mount(8) calls them, such as `bind`, `rec`, `ro` and `detach`.
const MountFlagsKey = attribute.Key("cniscope.mount.flags")

func MountFlags(v ...string) attribute.KeyValue { return MountFlagsKey.StringSlice(v) }

// AgentKey is cniscope.agent: Program that answered; of a command the agent that ran it, if calls of that agent are invisible.
const AgentKey = attribute.Key("cniscope.agent")

func Agent(v string) attribute.KeyValue { return AgentKey.String(v) }

// AgentPIDKey is cniscope.agent_pid: PID of that program.
const AgentPIDKey = attribute.Key("cniscope.agent_pid")

func AgentPID(v int) attribute.KeyValue { return AgentPIDKey.Int(v) }

// AgentListensKey is cniscope.agent_listens: No answering process was seen: the two attributes above name the listener (systemd, under socket activation).
const AgentListensKey = attribute.Key("cniscope.agent_listens")

func AgentListens(v bool) attribute.KeyValue { return AgentListensKey.Bool(v) }

// AgentCPUMSKey is cniscope.agent_cpu_ms: CPU time of the agent during the call, for all callers, to 10 ms.
const AgentCPUMSKey = attribute.Key("cniscope.agent_cpu_ms")

func AgentCPUMS(v time.Duration) attribute.KeyValue { return AgentCPUMSKey.Float64(milliseconds(v)) }

// AgentStoppedMSKey is cniscope.agent_stopped_ms: Time in which it was found stopped, by a signal or a debugger; sampled, as all these.
const AgentStoppedMSKey = attribute.Key("cniscope.agent_stopped_ms")

func AgentStoppedMS(v time.Duration) attribute.KeyValue {
	return AgentStoppedMSKey.Float64(milliseconds(v))
}

// AgentFrozenMSKey is cniscope.agent_frozen_ms: Time in which its cgroup was found frozen.
const AgentFrozenMSKey = attribute.Key("cniscope.agent_frozen_ms")

func AgentFrozenMS(v time.Duration) attribute.KeyValue {
	return AgentFrozenMSKey.Float64(milliseconds(v))
}

// AgentUninterruptibleMSKey is cniscope.agent_uninterruptible_ms: Time in which a thread of it was found waiting in the kernel for what no signal ends (D).
const AgentUninterruptibleMSKey = attribute.Key("cniscope.agent_uninterruptible_ms")

func AgentUninterruptibleMS(v time.Duration) attribute.KeyValue {
	return AgentUninterruptibleMSKey.Float64(milliseconds(v))
}

// AgentRunningMSKey is cniscope.agent_running_ms: Time in which a thread of it was found on a CPU, or waiting for one.
const AgentRunningMSKey = attribute.Key("cniscope.agent_running_ms")

func AgentRunningMS(v time.Duration) attribute.KeyValue {
	return AgentRunningMSKey.Float64(milliseconds(v))
}

// AgentWaitingMSKey is cniscope.agent_waiting_ms: Time in which a thread of it was found waiting, and not as threads without work do.
const AgentWaitingMSKey = attribute.Key("cniscope.agent_waiting_ms")

func AgentWaitingMS(v time.Duration) attribute.KeyValue {
	return AgentWaitingMSKey.Float64(milliseconds(v))
}

// AgentIdleMSKey is cniscope.agent_idle_ms: Time in which all of its threads were found without work.
const AgentIdleMSKey = attribute.Key("cniscope.agent_idle_ms")

func AgentIdleMS(v time.Duration) attribute.KeyValue { return AgentIdleMSKey.Float64(milliseconds(v)) }

// AgentWaitsInKey is cniscope.agent_waits_in: Kernel function that a thread of it was found in longest, in the first of these states that it was in and that is not idle; of a recording without states, in which its first thread was seen last.
const AgentWaitsInKey = attribute.Key("cniscope.agent_waits_in")

func AgentWaitsIn(v string) attribute.KeyValue { return AgentWaitsInKey.String(v) }

// AgentKilledKey is cniscope.agent_killed: `OOM` if the kernel killed it during the call because memory ran out.
const AgentKilledKey = attribute.Key("cniscope.agent_killed")

func AgentKilled(v string) attribute.KeyValue { return AgentKilledKey.String(v) }

// StandingKey is cniscope.standing: The connection was there before: the span is one exchange on it, from the first write to the read that ends the wait.
const StandingKey = attribute.Key("cniscope.standing")

func Standing(v bool) attribute.KeyValue { return StandingKey.Bool(v) }

// UnaskedKey is cniscope.unasked: The other end spoke by itself, which is weak evidence that it was waited for.
const UnaskedKey = attribute.Key("cniscope.unasked")

func Unasked(v bool) attribute.KeyValue { return UnaskedKey.Bool(v) }

// ReceiptKey is cniscope.receipt: What was written may only have acknowledged what was read there just before, so that no answer was waited for.
const ReceiptKey = attribute.Key("cniscope.receipt")

func Receipt(v bool) attribute.KeyValue { return ReceiptKey.Bool(v) }

// ClippedKey is cniscope.clipped: The exchange began before the call to the agent, or before the agent was followed.
const ClippedKey = attribute.Key("cniscope.clipped")

func Clipped(v bool) attribute.KeyValue { return ClippedKey.Bool(v) }

// PolledPathKey is cniscope.polled.path: Path that a process tried again and again, each time with the same error.
const PolledPathKey = attribute.Key("cniscope.polled.path")

func PolledPath(v string) attribute.KeyValue { return PolledPathKey.String(v) }

// PolledTriesKey is cniscope.polled.tries: Number of tries that were seen.
const PolledTriesKey = attribute.Key("cniscope.polled.tries")

func PolledTries(v int) attribute.KeyValue { return PolledTriesKey.Int(v) }

// TriesKey is cniscope.tries: Number of attempts to connect, if more than one.
const TriesKey = attribute.Key("cniscope.tries")

func Tries(v int) attribute.KeyValue { return TriesKey.Int(v) }

// AttributionKey is cniscope.attribution: Evidence that an agent did this for the call: `certain` or `candidate`. See What an agent did.
const AttributionKey = attribute.Key("cniscope.attribution")

func Attribution(v string) attribute.KeyValue { return AttributionKey.String(v) }

// PeriodicKey is cniscope.periodic: The agent also runs this command between calls.
const PeriodicKey = attribute.Key("cniscope.periodic")

func Periodic(v bool) attribute.KeyValue { return PeriodicKey.Bool(v) }

// OtherCallsKey is cniscope.other_calls: Number of other calls that it may have been for; the span links to them.
const OtherCallsKey = attribute.Key("cniscope.other_calls")

func OtherCalls(v int) attribute.KeyValue { return OtherCallsKey.Int(v) }

// ReasonKey is cniscope.reason: What the runtime last said is wrong.
const ReasonKey = attribute.Key("cniscope.reason")

func Reason(v string) attribute.KeyValue { return ReasonKey.String(v) }

// NetworksKey is cniscope.networks: Networks that the CNI directory last had.
const NetworksKey = attribute.Key("cniscope.networks")

func Networks(v string) attribute.KeyValue { return NetworksKey.String(v) }

// MissingKey is cniscope.missing: What had to come next until the network was ready, and who should bring it.
const MissingKey = attribute.Key("cniscope.missing")

func Missing(v string) attribute.KeyValue { return MissingKey.String(v) }

// FolderChangesKey is cniscope.folder_changes: Number of changes of the directory during the outage.
const FolderChangesKey = attribute.Key("cniscope.folder_changes")

func FolderChanges(v int) attribute.KeyValue { return FolderChangesKey.Int(v) }
