package trace

import (
	"maps"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/semconv/v1.43.0"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/attr"
	"github.com/cniscope/cniscope/pkg/timeline"
)

// aboutInside is on plugins and commands: how much of what went on inside, also of what is
// too short for spans of its own.
func aboutInside(im *timeline.Image) (kvs []attribute.KeyValue) {
	changes, queries := im.Tallies[timeline.FactChange], im.Tallies[timeline.FactQuery]
	tally := func(t timeline.Tally, count func(int) attribute.KeyValue, took func(time.Duration) attribute.KeyValue) {
		if t.Count > 0 {
			kvs = append(kvs, count(t.Count), took(time.Duration(t.Time)))
		}
	}
	tally(im.Tallies[timeline.FactLock], attr.Locks, attr.LockWaitMS)
	tally(im.Tallies[timeline.FactMutex], attr.KernelLocks, attr.KernelLockWaitMS)
	kvs = append(kvs, nonZero(attr.Changes(changes.Count), attr.Queries(queries.Count))...)
	if n := changes.Count + queries.Count; n > 0 {
		kvs = append(kvs, attr.Requests(n),
			attr.RequestMS(time.Duration(changes.Time+queries.Time)))
	}
	tally(im.Tallies[timeline.FactSetting], attr.Sysctls, attr.SysctlMS)
	tally(im.Tallies[timeline.FactCall], attr.SystemCalls, attr.SystemCallMS)
	if im.Tallies[timeline.FactSleep].Count > 0 {
		kvs = append(kvs, attr.SleepMS(together(im.Asleep)))
	}
	if im.Tallies[timeline.FactPoll].Count > 0 {
		kvs = append(kvs, attr.PollMS(together(im.Polling)))
	}
	connections := 0
	for range timeline.Each[*timeline.Connection](im.Facts) {
		connections++
	}
	kvs = append(kvs, nonZero(
		attr.Connections(connections),
		attr.NetNSSwitches(im.Switches),
		attr.NetNSInodeEntered(im.Entered.Label),
	)...)
	if im.Run == nil {
		return kvs
	}
	return slices.Concat(kvs, aboutConfiguration(im.Run), aboutResult(im.Run), aboutError(im.Run))
}

// together is how long at least one thread did it.
func together(all []timeline.Interval) (sum time.Duration) {
	for _, i := range all {
		sum += time.Duration(i.End - i.Start)
	}
	return sum
}

// aboutConfiguration is what a run read.
func aboutConfiguration(run *timeline.Run) []attribute.KeyValue {
	c := run.Configuration
	if c == nil {
		return nil
	}
	return nonZero(
		attr.CNIVersion(c.CNIVersion),
		attr.ConfiguredNetwork(c.Network),
		attr.ConfiguredType(c.Type),
		attr.ConfiguredIPAM(c.IPAM),
		attr.ConfigurationInvalid(c.Invalid),
	)
}

// aboutResult is what a run wrote.
func aboutResult(run *timeline.Run) []attribute.KeyValue {
	r := run.Result
	if r == nil {
		return nil
	}
	return nonZero(
		attr.ResultIPs(r.IPs...),
		attr.ResultInterfaces(r.Interfaces...),
		attr.ResultRoutes(r.Routes...),
		attr.ResultVersion(r.CNIVersion),
		attr.ResultInvalid(r.Invalid),
	)
}

// aboutError is the error that a run wrote.
func aboutError(run *timeline.Run) []attribute.KeyValue {
	if run == nil || run.Result == nil {
		return nil
	}
	return nonZero(attr.CNIErrorCode(int(run.Result.Code)), attr.CNIErrorMessage(run.Result.Message))
}

// aboutInsides is on a call.
func aboutInsides(call *timeline.Call) (kvs []attribute.KeyValue) {
	kvs = append([]attribute.KeyValue{attr.ConcurrentCalls(call.Concurrent)}, nonZero(attr.SystemCallsSeen(call.Seen))...)
	for _, what := range slices.Sorted(maps.Keys(call.Cut)) {
		kvs = append(kvs, attr.Cut(what, int(call.Cut[what])))
	}
	return kvs
}

// firstConnection says when the pod's first connection was there, if that came in time.
func (w *writer) firstConnection(s *tracepb.Span, call *timeline.Call) {
	if call.First == nil {
		return
	}
	s.Attributes = append(s.Attributes, keyValue(after(call.End, call.First.At)))
	s.Events = append(s.Events, &tracepb.Span_Event{
		Name: "first connection", TimeUnixNano: w.wall(call.First.At),
		Attributes: keyValues(ends(call.First.Local, call.First.Remote)),
	})
}

// after is how long after the end of its ADD a pod had its first connection.
func after(end, at int64) attribute.KeyValue {
	return attr.FirstConnectionMS(time.Duration(max(0, at-end)))
}

func ends(local, remote string) []attribute.KeyValue {
	return nonZero(semconv.NetworkLocalAddress(local), semconv.NetworkPeerAddress(remote))
}
