package trace

import (
	"maps"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/timeline"
)

// aboutInside is on plugins and commands: how much of what went on inside, also of what is
// too short for spans of its own.
func aboutInside(im *timeline.Image) (kvs []attribute.KeyValue) {
	in := im.Inside
	if in == nil {
		return nil
	}
	tally := func(t timeline.Tally, count, took string) {
		if t.Count > 0 {
			kvs = append(kvs, attribute.Int(count, t.Count))
			if took != "" {
				kvs = append(kvs, attribute.Float64(took, ms(time.Duration(t.Time))))
			}
		}
	}
	tally(in.Locks, "cniscope.locks", "cniscope.lock_wait_ms")
	tally(in.Mutexes, "cniscope.kernel_locks", "cniscope.kernel_lock_wait_ms")
	tally(in.Changes, "cniscope.changes", "")
	tally(in.Queries, "cniscope.queries", "")
	if n := in.Changes.Count + in.Queries.Count; n > 0 {
		kvs = append(kvs, attribute.Int("cniscope.requests", n),
			attribute.Float64("cniscope.netlink_ms", ms(time.Duration(in.Changes.Time+in.Queries.Time))))
	}
	tally(in.Sysctls, "cniscope.sysctls", "cniscope.sysctl_ms")
	tally(in.Calls, "cniscope.system_calls", "cniscope.system_call_ms")
	if in.Sleeps.Count > 0 {
		kvs = append(kvs, attribute.Float64("cniscope.sleep_ms", ms(together(in.Asleep))))
	}
	if in.Polls.Count > 0 {
		kvs = append(kvs, attribute.Float64("cniscope.poll_ms", ms(together(in.Polling))))
	}
	if n := len(in.Connections); n > 0 {
		kvs = append(kvs, attribute.Int("cniscope.connections", n))
	}
	if in.Switches > 0 {
		kvs = append(kvs, attribute.Int("cniscope.netns_switches", in.Switches))
	}
	kvs = append(kvs, nonEmpty(attribute.String("cniscope.netns_inode_entered", in.Entered.Label))...)
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
	return nonEmpty(
		attribute.String("cni.version", c.CNIVersion),
		attribute.String("cniscope.configured.network", c.Network),
		attribute.String("cniscope.configured.type", c.Type),
		attribute.String("cniscope.configured.ipam", c.IPAM),
		attribute.String("cniscope.configuration_invalid", c.Invalid),
	)
}

// aboutResult is what a run wrote.
func aboutResult(in *timeline.Inside) (kvs []attribute.KeyValue) {
	r := in.Result
	if r == nil {
		return nil
	}
	for _, list := range []struct {
		name  string
		items []string
	}{
		{"cniscope.result.ips", r.IPs}, {"cniscope.result.interfaces", r.Interfaces}, {"cniscope.result.routes", r.Routes},
	} {
		if len(list.items) > 0 {
			kvs = append(kvs, attribute.StringSlice(list.name, list.items))
		}
	}
	return append(kvs, nonEmpty(attribute.String("cniscope.result.version", r.CNIVersion), attribute.String("cniscope.result_invalid", r.Invalid))...)
}

// aboutError is the error that a run wrote.
func aboutError(im *timeline.Image) (kvs []attribute.KeyValue) {
	if im.Inside == nil || im.Inside.Result == nil {
		return nil
	}
	if code := im.Inside.Result.Code; code != 0 {
		kvs = append(kvs, attribute.Int64("cni.error.code", int64(code)))
	}
	return append(kvs, nonEmpty(attribute.String("cni.error.message", im.Inside.Result.Message))...)
}

// aboutInsides is on a call.
func aboutInsides(call *timeline.Call) (kvs []attribute.KeyValue) {
	kvs = append(kvs, attribute.Int("cniscope.concurrent_calls", call.Concurrent))
	if call.Seen {
		kvs = append(kvs, attribute.Bool("cniscope.inside_seen", true))
	}
	for _, what := range slices.Sorted(maps.Keys(call.Cut)) {
		kvs = append(kvs, attribute.Int64("cniscope.cut."+what, int64(call.Cut[what])))
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
	return attribute.Float64("cniscope.first_connection_ms", ms(time.Duration(max(0, at-end))))
}

func ends(local, remote string) []attribute.KeyValue {
	return nonEmpty(attribute.String("network.local.address", local), attribute.String("network.peer.address", remote))
}
