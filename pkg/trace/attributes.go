package trace

import (
	"maps"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/timeline"
)

// ms is a duration in milliseconds, to the nanosecond.
func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// identity is on every span.
func identity(op *timeline.Operation) (kvs []attribute.KeyValue) {
	return nonEmpty(
		semconv.K8SNamespaceName(op.Pod.Namespace),
		semconv.K8SPodName(op.Pod.Name),
		semconv.K8SPodUID(op.Pod.UID),
		attribute.String("sandbox.id", op.ContainerID),
	)
}

// aboutSandbox is what NRI said: on the operation, or where there is none on its calls.
func aboutSandbox(op *timeline.Operation) (kvs []attribute.KeyValue) {
	kvs = append(kvs, attribute.String("cniscope.closed", string(op.Closed)))
	if op.Attempt > 1 {
		kvs = append(kvs, attribute.Int("cniscope.attempt", op.Attempt))
	}
	if op.Sandbox == nil {
		return kvs
	}
	if op.Kind == timeline.Setup {
		kvs = append(kvs, attribute.Bool("cniscope.sandbox_running", op.Running))
	}
	if len(op.Sandbox.IPs) > 0 {
		// A scalar, because people search for it; a second address goes beside it.
		kvs = append(kvs, semconv.K8SPodIP(op.Sandbox.IPs[0]))
	}
	if len(op.Sandbox.IPs) > 1 {
		kvs = append(kvs, attribute.String("cniscope.second_ip", op.Sandbox.IPs[1]))
	}
	if op.Sandbox.RuntimeHandler != "" {
		kvs = append(kvs, attribute.String("cniscope.runtime_handler", op.Sandbox.RuntimeHandler))
	}
	for _, key := range slices.Sorted(maps.Keys(op.Sandbox.Labels)) {
		kvs = append(kvs, semconv.K8SPodLabel(key, op.Sandbox.Labels[key]))
	}
	return kvs
}

// aboutCall is on a call and on everything below it.
func aboutCall(call *timeline.Call) []attribute.KeyValue {
	return nonEmpty(
		attribute.String("cni.ifname", call.IfName),
		attribute.String("cni.name", call.Network),
	)
}

// timed is what the parts of a call's wall time are called: a partition of it. What is
// absent took no time; the first four are always there.
func timed() []timedPart {
	return []timedPart{
		{judge.Commands, "cniscope.time.commands_ms", true},
		{judge.Plugins, "cniscope.time.plugins_ms", true},
		{judge.Between, "cniscope.time.between_runs_ms", true},
		{judge.Unexplained, "cniscope.time.unexplained_ms", true},
		{judge.Locks, "cniscope.time.locks_ms", false},
		{judge.KernelLocks, "cniscope.time.kernel_locks_ms", false},
		{judge.Network, "cniscope.time.network_ms", false},
		{judge.SystemCalls, "cniscope.time.system_calls_ms", false},
		{judge.DAD, "cniscope.time.dad_ms", false},
		{judge.Agents, "cniscope.time.agent_ms", false},
		{judge.Sleep, "cniscope.time.sleep_ms", false},
		{judge.Waiting, "cniscope.time.waiting_ms", false},
	}
}

type timedPart struct {
	kind   judge.PartKind
	name   string
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
			kvs = append(kvs, attribute.Float64(part.name, ms(d)))
		}
	}
	kvs = append(kvs, attribute.Int("cniscope.commands", commands))
	if v := c.Verdict; v != nil {
		kvs = append(kvs, nonEmpty(
			attribute.String("cniscope.verdict", v.Says),
			attribute.String("cniscope.cause", string(v.Cause)),
			attribute.String("cniscope.remedy", v.Remedy),
			attribute.String("cniscope.report", v.Report),
		)...)
	}
	if len(c.Parts) > 0 {
		kvs = append(kvs,
			attribute.String("cniscope.biggest_part", c.Parts[0].String()),
			attribute.Float64("cniscope.biggest_part_ms", ms(c.Parts[0].Time)))
	}
	for _, slow := range []struct {
		name string
		n    int
	}{{"cniscope.slow_commands", c.SlowCommands}, {"cniscope.slow_agents", c.SlowAgents}, {"cniscope.slow_locks", c.SlowLocks}} {
		if slow.n > 0 {
			kvs = append(kvs, attribute.Int(slow.name, slow.n))
		}
	}
	return kvs
}

// aboutLoss says that the call may have held more than is shown.
func aboutLoss(op *timeline.Operation) []attribute.KeyValue {
	if len(op.Partial) == 0 {
		return nil
	}
	kvs := []attribute.KeyValue{
		attribute.Bool("cniscope.partial", true),
		attribute.String("cniscope.partial_reason", strings.Join(op.Partial, "; ")),
	}
	if op.Lost > 0 {
		kvs = append(kvs, attribute.Int64("cniscope.lost_events", int64(op.Lost)))
	}
	if op.Dropped > 0 {
		kvs = append(kvs, attribute.Int("cniscope.dropped_spans", op.Dropped))
	}
	return kvs
}

// aboutProcess is on plugins and commands: what ran, and how it ended.
func aboutProcess(im *timeline.Image) []attribute.KeyValue {
	kvs := []attribute.KeyValue{
		semconv.ProcessCommand(im.Name),
		semconv.ProcessExecutableName(im.File[strings.LastIndexByte(im.File, '/')+1:]),
		semconv.ProcessExecutablePath(im.File),
		semconv.ProcessPID(int(im.PID)),
		semconv.ProcessParentPID(int(im.ParentPID)),
		attribute.Float64("cniscope.cpu_ms", ms(time.Duration(im.CPU))),
		attribute.Float64("cniscope.run_delay_ms", ms(time.Duration(im.RunDelay))),
	}
	if len(im.Args) > 0 {
		kvs = append(kvs, semconv.ProcessCommandArgs(im.Args...))
	}
	if im.Hidden > 0 {
		kvs = append(kvs, attribute.Int("cniscope.hidden_arguments", im.Hidden))
	}
	kvs = append(kvs, aboutAttribution(im.Attribution)...)
	if im.NetNS.Label != "" {
		kvs = append(kvs, attribute.String("cniscope.netns_inode", im.NetNS.Label))
	}
	if im.Switched.Label != "" {
		kvs = append(kvs, attribute.String("cniscope.netns_inode_at_exit", im.Switched.Label))
	}
	if im.Ended && !im.Replaced && !im.Unseen {
		if im.Signal == "" {
			kvs = append(kvs, semconv.ProcessExitCode(int(im.Code)))
		} else {
			kvs = append(kvs, attribute.String("cniscope.signal", im.Signal))
		}
	}
	if im.Failed() || im.Run != nil && judge.Fails(im) {
		kvs = append(kvs, attribute.String(string(semconv.ErrorTypeKey), errorType(im)))
	}
	for _, mark := range []struct {
		is   bool
		name string
	}{
		{im.Replaced, "cniscope.replaced"},
		{im.Outlived, "cniscope.outlived"},
		{!im.Ended, "cniscope.unfinished"},
		{im.Unseen, "cniscope.end_unseen"},
		{im.InFlight, "cniscope.in_flight_at_start"},
		{im.Truncated, "cniscope.truncated"},
	} {
		if mark.is {
			kvs = append(kvs, attribute.Bool(mark.name, true))
		}
	}
	return kvs
}

// nonEmpty leaves out the strings that say nothing.
func nonEmpty(kvs ...attribute.KeyValue) (kept []attribute.KeyValue) {
	for _, kv := range kvs {
		if kv.Value.AsString() != "" {
			kept = append(kept, kv)
		}
	}
	return kept
}
