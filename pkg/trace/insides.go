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
	in := im.Inside
	if in == nil {
		return nil
	}
	tally := func(t timeline.Tally, count func(int) attribute.KeyValue, took func(time.Duration) attribute.KeyValue) {
		if t.Count > 0 {
			kvs = append(kvs, count(t.Count), took(time.Duration(t.Time)))
		}
	}
	tally(in.Locks, attr.Locks, attr.LockWaitMS)
	tally(in.Mutexes, attr.KernelLocks, attr.KernelLockWaitMS)
	kvs = append(kvs, nonZero(attr.Changes(in.Changes.Count), attr.Queries(in.Queries.Count))...)
	if n := in.Changes.Count + in.Queries.Count; n > 0 {
		kvs = append(kvs, attr.Requests(n),
			attr.NetlinkMS(time.Duration(in.Changes.Time+in.Queries.Time)))
	}
	tally(in.Sysctls, attr.Sysctls, attr.SysctlMS)
	tally(in.Calls, attr.SystemCalls, attr.SystemCallMS)
	if in.Sleeps.Count > 0 {
		kvs = append(kvs, attr.SleepMS(together(in.Asleep)))
	}
	if in.Polls.Count > 0 {
		kvs = append(kvs, attr.PollMS(together(in.Polling)))
	}
	kvs = append(kvs, nonZero(
		attr.Connections(len(in.Connections)),
		attr.NetNSSwitches(in.Switches),
		attr.NetNSInodeEntered(in.Entered.Label),
	)...)
	return slices.Concat(kvs, aboutConfiguration(in), aboutResult(in), aboutError(im))
}

// together is how long at least one thread did it.
func together(all []timeline.Interval) (sum time.Duration) {
	for _, i := range all {
		sum += time.Duration(i.End - i.Start)
	}
	return sum
}

// aboutConfiguration is what a run read.
func aboutConfiguration(in *timeline.Inside) []attribute.KeyValue {
	c := in.Configuration
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
func aboutResult(in *timeline.Inside) []attribute.KeyValue {
	r := in.Result
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
func aboutError(im *timeline.Image) []attribute.KeyValue {
	if im.Inside == nil || im.Inside.Result == nil {
		return nil
	}
	return nonZero(attr.CNIErrorCode(int(im.Inside.Result.Code)), attr.CNIErrorMessage(im.Inside.Result.Message))
}

// aboutInsides is on a call.
func aboutInsides(call *timeline.Call) (kvs []attribute.KeyValue) {
	kvs = append([]attribute.KeyValue{attr.ConcurrentCalls(call.Concurrent)}, nonZero(attr.InsideSeen(call.Seen))...)
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
