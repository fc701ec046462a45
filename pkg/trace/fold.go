package trace

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/semconv/v1.43.0"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/cniscope/cniscope/pkg/attr"
	"github.com/cniscope/cniscope/pkg/text"
)

// Fold returns an operation's spans in a cheaper form. Equal commands below one span become one span with number, sum,
// exit codes, and the longest, unless slow, failed or incompletely observed. An ordinary call also loses requests and
// waits, whose sums its process has.
func Fold(spans *tracepb.ResourceSpans) *tracepb.ResourceSpans {
	folded := &tracepb.ResourceSpans{Resource: spans.Resource, SchemaUrl: spans.SchemaUrl}
	for _, scope := range spans.ScopeSpans {
		all := slices.Clone(scope.Spans)
		plain := slices.ContainsFunc(all, func(s *tracepb.Span) bool { return len(s.Attributes) > 0 })
		for i := range all {
			if plain {
				all[i] = encoded(all[i])
			}
		}
		all = fold(all)
		for i := range all {
			if plain {
				read(all[i])
			}
		}
		folded.ScopeSpans = append(folded.ScopeSpans, &tracepb.ScopeSpans{
			Scope: scope.Scope, SchemaUrl: scope.SchemaUrl, Spans: all,
		})
	}
	return folded
}

func encoded(s *tracepb.Span) *tracepb.Span {
	var about []byte
	for _, kv := range s.Attributes {
		value, _ := proto.Marshal(kv.Value)
		about = appendOne(about, inSpan, attribute.Key(kv.Key), value)
	}
	s = (&branch{Span: s}).own()
	s.ProtoReflect().SetUnknown(about)
	return s
}

func fold(spans []*tracepb.Span) []*tracepb.Span {
	all := branches(spans)
	for _, b := range all {
		if b.parent == nil {
			series(b.SpanId, b.children)
		}
	}
	for _, b := range all {
		if b.kind == attr.KindCall && b.ordinary() {
			b.brief()
		}
	}
	kept := make([]*tracepb.Span, 0, len(all))
	for _, b := range all {
		if !b.gone {
			kept = append(kept, b.Span)
		}
	}
	return kept
}

type branch struct {
	*tracepb.Span
	about    []pair
	kind     string
	parent   *branch
	children []*branch
	place    int
	gone     bool
	copied   bool
	quick    bool
}

func branches(spans []*tracepb.Span) []*branch {
	all, byID := make([]*branch, len(spans)), make(map[string]*branch, len(spans))
	for i, s := range spans {
		b := &branch{Span: s, about: attached(s), place: i}
		b.kind = b.value(attr.KindKey).GetStringValue()
		all[i], byID[string(s.SpanId)] = b, b
	}
	for _, b := range all {
		if up := byID[string(b.ParentSpanId)]; up != nil && up != b {
			b.parent = up
			up.children = append(up.children, b)
		}
	}
	for _, b := range all {
		if b.parent == nil {
			b.look()
		}
	}
	return all
}

func (b *branch) look() {
	b.quick = !b.remarkable()
	for _, child := range b.children {
		child.look()
		b.quick = b.quick && child.quick && (b.kind == attr.KindCommand || child.kind != attr.KindCommand)
	}
	switch b.kind {
	case attr.KindCommand, attr.KindInterface, attr.KindRequest, attr.KindSysctl, attr.KindLock, attr.KindWait:
	default:
		b.quick = false
	}
}

func (b *branch) remarkable() bool {
	if b.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR || b.encoded(attr.FoldedCountKey) != nil {
		return true
	}
	for _, key := range []attribute.Key{
		attr.SlowKey, attr.UnfinishedKey, attr.EndUnseenKey, attr.OutlivedKey, attr.InFlightAtStartKey, attr.UnidentifiedKey,
	} {
		if b.value(key).GetBoolValue() {
			return true
		}
	}
	return false
}

func (b *branch) value(key attribute.Key) *commonpb.AnyValue {
	data := b.encoded(key)
	if data == nil {
		return nil
	}
	v := &commonpb.AnyValue{}
	_ = proto.Unmarshal(data, v)
	return v
}

func (b *branch) encoded(key attribute.Key) []byte {
	for i := range b.about {
		if b.about[i].is(key) {
			return b.about[i].value()
		}
	}
	return nil
}

func earlier(a, b *branch) int {
	return cmp.Or(cmp.Compare(a.StartTimeUnixNano, b.StartTimeUnixNano), bytes.Compare(a.SpanId, b.SpanId))
}

func series(parent []byte, children []*branch) {
	groups := map[string][]*branch{}
	for _, c := range children {
		if c.gone || c.kind != attr.KindCommand || !c.quick {
			series(c.SpanId, c.children)
			continue
		}
		key := c.equality()
		groups[key] = append(groups[key], c)
	}
	for _, group := range groups {
		if len(group) == 1 {
			series(group[0].SpanId, group[0].children)
			continue
		}
		slices.SortFunc(group, earlier)
		one := merged(group, parent)
		about := attached(one)
		var below []*branch
		for _, b := range group {
			b.gone = true
			for _, child := range b.children {
				if child.kind == attr.KindCommand {
					below = append(below, child)
				} else {
					child.drop()
				}
			}
		}
		first := slices.MinFunc(group, func(a, b *branch) int { return cmp.Compare(a.place, b.place) })
		first.Span, first.about, first.gone, first.copied, first.children = one, about, false, true, below
		for _, child := range below {
			child.parent = first
			child.own().ParentSpanId = one.SpanId
		}
		series(one.SpanId, below)
	}
}

func (b *branch) drop() {
	b.gone = true
	for _, child := range b.children {
		child.drop()
	}
}

func (b *branch) own() *tracepb.Span {
	if b.copied {
		return b.Span
	}
	s := b.Span
	b.copied, b.Span = true, &tracepb.Span{
		TraceId: s.TraceId, SpanId: s.SpanId, TraceState: s.TraceState, ParentSpanId: s.ParentSpanId, Flags: s.Flags,
		Name: s.Name, Kind: s.Kind, StartTimeUnixNano: s.StartTimeUnixNano, EndTimeUnixNano: s.EndTimeUnixNano,
		Events: slices.Clone(s.Events), Links: s.Links, Status: s.Status,
	}
	b.ProtoReflect().SetUnknown(slices.Clip(s.ProtoReflect().GetUnknown()))
	return b.Span
}

// equality is the same for runs of one program, attributed by the same evidence.
func (b *branch) equality() string {
	key := b.Name
	for _, k := range []attribute.Key{
		semconv.ProcessCommandKey, semconv.ProcessExecutablePathKey, attr.ReplacedKey,
		attr.AttributionKey, attr.PeriodicKey, attr.OtherCallsKey,
	} {
		key += "\x00" + string(b.encoded(k))
	}
	for _, link := range b.Links {
		key += "\x00" + string(link.TraceId) + string(link.SpanId)
	}
	return key
}

func merged(group []*branch, parent []byte) *tracepb.Span {
	first, worst := group[0], group[0]
	end, total := first.EndTimeUnixNano, time.Duration(0)
	for _, b := range group {
		end = max(end, b.EndTimeUnixNano)
		total += b.took()
		if b.took() > worst.took() {
			worst = b
		}
	}
	s := &tracepb.Span{
		TraceId: first.TraceId, SpanId: first.SpanId, TraceState: first.TraceState, ParentSpanId: parent, Flags: first.Flags,
		Name: first.Name, Kind: first.Kind, StartTimeUnixNano: first.StartTimeUnixNano, EndTimeUnixNano: end,
		Links: first.Links,
	}
	about := appendAll(common(group), inSpan,
		attr.FoldedCount(len(group)), attr.FoldedSumMS(total), attr.FoldedWorstMS(worst.took()))
	if args := worst.encoded(semconv.ProcessCommandArgsKey); args != nil {
		about = appendOne(about, inSpan, attr.FoldedWorstArgsKey, args)
	}
	s.ProtoReflect().SetUnknown(appendAll(appendAll(about, inSpan, exits(group)...), inSpan, sums(group)...))
	return s
}

// read decodes added attributes.
func read(s *tracepb.Span) {
	m := s.ProtoReflect()
	added := m.GetUnknown()
	m.SetUnknown(nil)
	_ = proto.UnmarshalOptions{Merge: true}.Unmarshal(added, s)
}

func (b *branch) took() time.Duration { return time.Duration(b.EndTimeUnixNano - b.StartTimeUnixNano) }

func common(group []*branch) (about []byte) {
	leave := map[string]bool{}
	for _, key := range slices.Concat(summed, []attribute.Key{
		semconv.ProcessPIDKey, semconv.ProcessExitCodeKey, semconv.ProcessCommandArgsKey,
		attr.SignalKey, attr.HiddenArgumentsKey, attr.TruncatedKey,
	}) {
		leave[string(key)] = true
	}
	for _, p := range group[0].about {
		if !leave[string(p.key())] && !slices.ContainsFunc(group[1:], func(b *branch) bool {
			return !bytes.Equal(b.encoded(attribute.Key(p.key())), p.value())
		}) {
			about = append(about, p.whole...)
		}
	}
	return about
}

var summed = []attribute.Key{
	attr.CPUMSKey, attr.RunDelayMSKey,
	attr.LocksKey, attr.LockWaitMSKey, attr.KernelLocksKey, attr.KernelLockWaitMSKey,
	attr.RequestsKey, attr.ChangesKey, attr.QueriesKey, attr.RequestMSKey,
	attr.SysctlsKey, attr.SysctlMSKey, attr.SystemCallsKey, attr.SystemCallMSKey,
	attr.SleepMSKey, attr.PollMSKey, attr.ConnectionsKey, attr.ExchangesKey, attr.NetNSSwitchesKey,
}

// sums adds tallies in ns: sums of floats depend on the order.
func sums(group []*branch) (kvs []attribute.KeyValue) {
	for _, key := range summed {
		var number, ns int64
		found, timed := false, false
		for _, b := range group {
			switch v := b.value(key).GetValue().(type) {
			case *commonpb.AnyValue_IntValue:
				found, number = true, number+v.IntValue
			case *commonpb.AnyValue_DoubleValue:
				timed, ns = true, ns+int64(math.Round(v.DoubleValue*float64(time.Millisecond)))
			}
		}
		switch {
		case found:
			kvs = append(kvs, key.Int64(number))
		case timed:
			kvs = append(kvs, key.Float64(float64(ns)/float64(time.Millisecond)))
		}
	}
	return kvs
}

func exits(group []*branch) (kvs []attribute.KeyValue) {
	counts := map[string]int{}
	for _, b := range group {
		if signal := b.value(attr.SignalKey); signal != nil {
			counts[signal.GetStringValue()]++
		} else if code := b.value(semconv.ProcessExitCodeKey); code != nil {
			counts[text.ExitCode(uint32(code.GetIntValue()))]++
		}
	}
	for ending, n := range counts {
		kvs = append(kvs, attr.FoldedExitCodes(ending, n))
	}
	slices.SortFunc(kvs, func(a, b attribute.KeyValue) int { return strings.Compare(string(a.Key), string(b.Key)) })
	return kvs
}
