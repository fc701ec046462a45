package trace

import (
	"maps"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/cniscope/cniscope/pkg/attr"
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/timeline"
)

// identity is on every span.
func identity(op *timeline.Operation) (kvs []attribute.KeyValue) {
	return nonZero(
		semconv.K8SNamespaceName(op.Pod.Namespace),
		semconv.K8SPodName(op.Pod.Name),
		semconv.K8SPodUID(op.Pod.UID),
		attr.SandboxID(op.ContainerID),
	)
}

// ownLabels is what containerd's own labels begin with, which it hands to NRI among the pod's.
const ownLabels = "io.cri-containerd."

// aboutSandbox is what NRI said: on the operation, or where there is none on its calls.
func aboutSandbox(op *timeline.Operation) (kvs []attribute.KeyValue) {
	kvs = append(kvs, attr.Closed(string(op.Closed)))
	if op.Attempt > 1 {
		kvs = append(kvs, attr.Attempt(op.Attempt))
	}
	if op.Sandbox == nil {
		return kvs
	}
	if op.Kind == timeline.Setup {
		kvs = append(kvs, attr.SandboxRunning(op.Running))
	}
	if len(op.Sandbox.IPs) > 0 {
		// A scalar, because people search for it; a second address goes beside it.
		kvs = append(kvs, semconv.K8SPodIP(op.Sandbox.IPs[0]))
	}
	if len(op.Sandbox.IPs) > 1 {
		kvs = append(kvs, attr.SecondIP(op.Sandbox.IPs[1]))
	}
	if op.Sandbox.RuntimeHandler != "" {
		kvs = append(kvs, attr.RuntimeHandler(op.Sandbox.RuntimeHandler))
	}
	for _, key := range slices.Sorted(maps.Keys(op.Sandbox.Labels)) {
		if !strings.HasPrefix(key, ownLabels) {
			kvs = append(kvs, semconv.K8SPodLabel(key, op.Sandbox.Labels[key]))
		}
	}
	return kvs
}

// aboutCall is on a call and on everything below it.
func aboutCall(call *timeline.Call) []attribute.KeyValue {
	return nonZero(
		attr.CNIIfName(call.IfName),
		attr.CNIName(call.Network),
	)
}

// timed is what the parts of a call's wall time are called: a partition of it. What is
// absent took no time; the first four are always there.
func timed() []timedPart {
	return []timedPart{
		{judge.Commands, attr.TimeCommandsMS, true},
		{judge.Plugins, attr.TimePluginsMS, true},
		{judge.Between, attr.TimeBetweenRunsMS, true},
		{judge.Unexplained, attr.TimeUnexplainedMS, true},
		{judge.Locks, attr.TimeLocksMS, false},
		{judge.KernelLocks, attr.TimeKernelLocksMS, false},
		{judge.Network, attr.TimeNetworkMS, false},
		{judge.SystemCalls, attr.TimeSystemCallsMS, false},
		{judge.DAD, attr.TimeDADMS, false},
		{judge.Agents, attr.TimeAgentMS, false},
		{judge.Sleep, attr.TimeSleepMS, false},
		{judge.Waiting, attr.TimeWaitingMS, false},
	}
}

type timedPart struct {
	kind   judge.PartKind
	key    func(time.Duration) attribute.KeyValue
	always bool
}

// aboutTime is where a call's wall time went.
func aboutTime(c *judge.Call) []attribute.KeyValue {
	sums := map[judge.PartKind]time.Duration{}
	commands := 0
	for _, part := range c.Parts {
		sums[part.Kind] += part.Time
		if part.Kind == judge.Commands {
			commands += part.Count
		}
	}
	var kvs []attribute.KeyValue
	for _, part := range timed() {
		if d := sums[part.kind]; part.always || d > 0 {
			kvs = append(kvs, part.key(d))
		}
	}
	kvs = append(kvs, attr.Commands(commands))
	if v := c.Verdict; v != nil {
		kvs = append(kvs, nonZero(
			attr.Verdict(v.Says),
			attr.Cause(string(v.Cause)),
			attr.Remedy(v.Remedy),
			attr.Report(v.Report),
		)...)
	}
	if len(c.Parts) > 0 {
		kvs = append(kvs,
			attr.BiggestPart(c.Parts[0].String()),
			attr.BiggestPartMS(c.Parts[0].Time))
	}
	return append(kvs, nonZero(attr.SlowCommands(c.SlowCommands), attr.SlowAgents(c.SlowAgents), attr.SlowLocks(c.SlowLocks))...)
}

// aboutLoss says that the call may have held more than is shown.
func aboutLoss(op *timeline.Operation) []attribute.KeyValue {
	if len(op.Partial) == 0 {
		return nil
	}
	return nonZero(
		attr.Partial(true),
		attr.PartialReason(strings.Join(op.Partial, "; ")),
		attr.LostEvents(int(op.Lost)),
		attr.DroppedImages(op.Dropped),
	)
}

// aboutProcess is on plugins and commands: what ran, and how it ended.
func aboutProcess(im *timeline.Image) []attribute.KeyValue {
	kvs := []attribute.KeyValue{
		semconv.ProcessCommand(im.Name),
		semconv.ProcessExecutableName(im.File[strings.LastIndexByte(im.File, '/')+1:]),
		semconv.ProcessExecutablePath(im.File),
		semconv.ProcessPID(int(im.PID)),
		semconv.ProcessParentPID(int(im.ParentPID)),
		attr.CPUMS(time.Duration(im.CPU)),
		attr.RunDelayMS(time.Duration(im.RunDelay)),
	}
	kvs = append(kvs, nonZero(semconv.ProcessCommandArgs(im.Args...), attr.HiddenArguments(im.Hidden))...)
	kvs = append(kvs, aboutAttribution(im.Attribution)...)
	kvs = append(kvs, nonZero(attr.NetNSInode(im.NetNS.Label), attr.NetNSInodeAtExit(im.Switched.Label))...)
	if im.Ended && !im.Replaced && !im.Unseen {
		if im.Signal == "" {
			kvs = append(kvs, semconv.ProcessExitCode(int(im.Code)))
		} else {
			kvs = append(kvs, attr.Signal(im.Signal))
		}
	}
	return append(kvs, nonZero(
		attr.Replaced(im.Replaced),
		attr.Outlived(im.Outlived),
		attr.Unfinished(!im.Ended),
		attr.EndUnseen(im.Unseen),
		attr.InFlightAtStart(im.InFlight),
		attr.Truncated(im.Truncated),
	)...)
}

// nonZero leaves out what says nothing: zero, false, the empty string and the empty list.
func nonZero(kvs ...attribute.KeyValue) []attribute.KeyValue {
	return slices.DeleteFunc(kvs, func(kv attribute.KeyValue) bool {
		v := kv.Value
		return v.AsString() == "" && v.AsInt64() == 0 && v.AsFloat64() == 0 && !v.AsBool() && len(v.AsStringSlice()) == 0
	})
}
