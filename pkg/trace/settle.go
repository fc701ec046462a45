package trace

import (
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/semconv/v1.43.0"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/attr"
)

func (b *branch) ordinary() bool {
	for _, key := range []attribute.Key{
		attr.VerdictKey, attr.SlowKey, attr.HungKey, attr.PartialKey,
		attr.SlowCommandsKey, attr.SlowAgentsKey, attr.SlowLocksKey,
	} {
		if b.encoded(key) != nil {
			return false
		}
	}
	return !b.remarkable()
}

// brief drops a call's details; sums remain.
func (b *branch) brief() {
	for _, child := range b.children {
		switch {
		case child.gone:
		case child.small():
			child.drop()
		default:
			child.shorten()
			child.brief()
		}
	}
}

// small reports whether its process's sums cover a span, and it links at most to a lock's holder.
func (b *branch) small() bool {
	if !b.quick || b.kind == attr.KindCommand || len(b.Links) > 0 && b.kind != attr.KindLock {
		return false
	}
	return !slices.ContainsFunc(b.children, func(child *branch) bool { return !child.small() })
}

// shorten drops requests' events, and attributes that only explain a delay.
func (b *branch) shorten() {
	if b.kind != attr.KindRun && b.kind != attr.KindDelegate && b.kind != attr.KindCommand {
		return
	}
	s := b.own()
	var about []byte
	for _, p := range b.about {
		if key := attribute.Key(p.key()); !slices.Contains(explanations, key) && !strings.HasPrefix(string(key), configured) {
			about = append(about, p.whole...)
		}
	}
	s.ProtoReflect().SetUnknown(about)
	s.Events = slices.DeleteFunc(s.Events, func(e *tracepb.Span_Event) bool {
		return slices.ContainsFunc(e.Attributes, func(kv *commonpb.KeyValue) bool {
			return kv.Key == string(attr.RequestProtocolKey) || kv.Key == string(attr.SysctlKeyKey)
		}) || slices.ContainsFunc(attached(e), func(p pair) bool {
			return p.is(attr.RequestProtocolKey) || p.is(attr.SysctlKeyKey)
		})
	})
}

const configured = "cniscope.configured."

var explanations = []attribute.Key{
	attr.RunDelayMSKey, attr.KernelLocksKey, attr.KernelLockWaitMSKey, attr.SysctlMSKey,
	attr.PollMSKey, attr.SleepMSKey, attr.SystemCallsKey, attr.SystemCallMSKey, attr.QueriesKey,
	attr.NetNSInodeKey, attr.NetNSInodeAtExitKey, attr.NetNSInodeEnteredKey, attr.NetNSSwitchesKey,
	attr.CNIVersionKey, attr.ResultVersionKey, attr.ResultRoutesKey,
	semconv.ProcessParentPIDKey, semconv.ProcessExecutableNameKey,
}
