// Package show presents exported spans: waterfalls, an HTML page, statistics, a comparison of two recordings.
package show

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/attr"
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/text"
)

type node struct {
	*tracepb.Span
	attrs
	children []*node
	// Spans folded into it, here (same) or before export, and their time.
	count int
	same  []*node
	total time.Duration
}

func (n *node) took() time.Duration {
	return time.Duration(n.EndTimeUnixNano - n.StartTimeUnixNano)
}

func (n *node) until(t uint64) float64 {
	whole := float64(max(1, n.EndTimeUnixNano-n.StartTimeUnixNano))
	return min(1, max(0, float64(int64(t-n.StartTimeUnixNano))/whole))
}

func (a attrs) text(key attribute.Key) string  { return a[key].GetStringValue() }
func (a attrs) is(key attribute.Key) bool      { return a[key].GetBoolValue() }
func (a attrs) number(key attribute.Key) int64 { return a[key].GetIntValue() }

func (n *node) kind() string { return n.text(attr.KindKey) }

func (n *node) walk(visit func(*node)) {
	for _, child := range n.children {
		visit(child)
		child.walk(visit)
	}
}

func (a attrs) ms(key attribute.Key) time.Duration {
	return time.Duration(a[key].GetDoubleValue()*float64(time.Millisecond) + 0.5)
}

func (n *node) failed() bool {
	return n.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR
}

func (n *node) notable() bool {
	return n.failed() || n.is(attr.SlowKey) || n.is(attr.UnfinishedKey) ||
		n.is(attr.EndUnseenKey) || n.is(attr.OutlivedKey)
}

func calls(rs *tracepb.ResourceSpans) (found []*node) {
	byID := map[string]*node{}
	var all []*node
	whose := identity(rs)
	for _, scope := range rs.ScopeSpans {
		for _, s := range scope.Spans {
			n := &node{Span: s, attrs: attributes(s.Attributes), count: 1}
			n.total = n.took()
			if n.series() {
				n.count, n.total = int(n.number(attr.FoldedCountKey)), n.ms(attr.FoldedSumMSKey)
			}
			byID[string(s.SpanId)] = n
			all = append(all, n)
		}
	}
	for _, n := range all {
		if n.kind() == attr.KindCall {
			for key, v := range whose {
				n.attrs[key] = v
			}
			found = append(found, n)
		} else if up := byID[string(n.ParentSpanId)]; up != nil {
			up.children = append(up.children, n)
		}
	}
	for _, n := range all {
		slices.SortStableFunc(n.children, byStart)
	}
	slices.SortStableFunc(found, byStart)
	return found
}

// identity returns the pod's attributes, which older spools have on the calls.
func identity(rs *tracepb.ResourceSpans) attrs {
	whose := attributes(rs.GetResource().GetAttributes())
	maps.DeleteFunc(whose, func(key attribute.Key, _ *commonpb.AnyValue) bool {
		return !strings.HasPrefix(string(key), "k8s.pod.") && key != semconv.K8SNamespaceNameKey && key != attr.SandboxIDKey
	})
	return whose
}

func byStart(a, b *node) int { return cmp.Compare(a.StartTimeUnixNano, b.StartTimeUnixNano) }

type attrs map[attribute.Key]*commonpb.AnyValue

func attributes(kvs []*commonpb.KeyValue) attrs {
	m := make(attrs, len(kvs))
	for _, kv := range kvs {
		m[attribute.Key(kv.Key)] = kv.Value
	}
	return m
}

func alike(a, b *node) bool {
	if a.series() || b.series() || a.Name != b.Name || a.evidence() != b.evidence() ||
		a.notable() || b.notable() || len(a.children)+len(b.children) > 0 {
		return false
	}
	switch a.kind() {
	case attr.KindCommand, attr.KindRequest, attr.KindWait, attr.KindSysctl:
		return true
	case attr.KindLock:
		lock := []attribute.Key{attr.LockPathKey, attr.LockNameKey}
		return a.words(lock...) == b.words(lock...)
	}
	return false
}

func (n *node) rowName() string {
	if n.kind() == attr.KindWait && n.Name == "sleep" {
		return "slept"
	}
	return n.Name
}

func (n *node) covered() string {
	switch total := text.Round(n.total); {
	case n.count <= 1 || n.took()*9/10 <= n.total && n.total <= n.took():
		return ""
	case n.series(): // its spans may have overlapped
		return fmt.Sprintf("sum %s", total)
	case n.kind() == attr.KindLock, n.kind() == attr.KindWait:
		return fmt.Sprintf("waiting %s", total)
	default:
		return fmt.Sprintf("running %s", total)
	}
}

func (n *node) series() bool { return n.number(attr.FoldedCountKey) > 0 }

func (n *node) longest() time.Duration {
	if n.series() {
		return n.ms(attr.FoldedWorstMSKey)
	}
	return n.took()
}

func (n *node) arguments() []string {
	if n.series() {
		return list(n.attrs[attr.FoldedWorstArgsKey])
	}
	return list(n.attrs[semconv.ProcessCommandArgsKey])
}

func (n *node) endings() string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(n.attrs)) {
		ending, is := strings.CutPrefix(string(key), string(attr.FoldedExitCodesKey)+".")
		if !is || ending == "0" {
			continue
		}
		if _, err := strconv.Atoi(ending); err == nil {
			ending = "exit " + ending
		}
		if times := n.number(key); times > 1 {
			ending += fmt.Sprint(" ×", times)
		}
		all = append(all, ending)
	}
	return strings.Join(all, ", ")
}

func fold(children []*node) (folded []*node) {
	for i := 0; i < len(children); {
		j := i + 1
		for j < len(children) && alike(children[i], children[j]) {
			j++
		}
		if j-i < 3 {
			folded = append(folded, children[i:j]...)
		} else {
			one := *children[i]
			one.same = children[i:j]
			one.Span = &tracepb.Span{
				Name:              one.Name,
				StartTimeUnixNano: one.StartTimeUnixNano,
			}
			one.attrs = attrs{}
			for _, key := range []attribute.Key{
				attr.KindKey, attr.LockPathKey, attr.LockNameKey, attr.AttributionKey, attr.PeriodicKey, attr.OtherCallsKey,
			} {
				if v := children[i].attrs[key]; v != nil {
					one.attrs[key] = v
				}
			}
			one.count, one.total = j-i, 0
			for _, n := range children[i:j] {
				until := max(one.EndTimeUnixNano, n.EndTimeUnixNano)
				one.total += time.Duration(until - max(one.EndTimeUnixNano, n.StartTimeUnixNano))
				one.EndTimeUnixNano = until
			}
			folded = append(folded, &one)
		}
		i = j
	}
	return folded
}

func (a attrs) words(keys ...attribute.Key) string {
	var all []string
	for _, key := range keys {
		if s := a.text(key); s != "" {
			all = append(all, s)
		}
	}
	return strings.Join(all, " ")
}

func list(v *commonpb.AnyValue) (items []string) {
	for _, item := range v.GetArrayValue().GetValues() {
		items = append(items, item.GetStringValue())
	}
	return items
}

const noPod = "no pod"

func pod(call *node) string {
	name := call.text(semconv.K8SNamespaceNameKey) + "/" + call.text(semconv.K8SPodNameKey)
	return cmp.Or(strings.TrimPrefix(name, "/"), noPod)
}

func what(call *node) string {
	return strings.TrimSpace(call.Name + " " + call.text(attr.CNIIfNameKey))
}

func (n *node) later() string {
	if n.attrs[attr.FirstConnectionMSKey] == nil {
		return ""
	}
	return text.Round(n.ms(attr.FirstConnectionMSKey)).String()
}

func (n *node) slow() bool {
	return n.is(attr.SlowKey) || slices.ContainsFunc(slowThings(), func(s slowThing) bool { return n.number(s.key) > 0 })
}

type slowThing struct {
	key   attribute.Key
	name  string
	kinds []judge.PartKind
}

func slowThings() []slowThing {
	return []slowThing{
		{attr.SlowCommandsKey, "slow command", []judge.PartKind{judge.Commands}},
		{attr.SlowAgentsKey, "slow agent call", []judge.PartKind{judge.Agents}},
		{attr.SlowLocksKey, "slow lock wait", []judge.PartKind{judge.Locks, judge.KernelLocks}},
	}
}

func (n *node) verdict() string {
	failure := ""
	if n.failed() {
		failure = n.Status.Message
	}
	return cmp.Or(n.text(attr.VerdictKey), failure, n.biggestPart())
}

func (n *node) biggestPart() string {
	part := n.text(attr.BiggestPartKey)
	if part == "" {
		return ""
	}
	took := text.Round(n.ms(attr.BiggestPartMSKey))
	return fmt.Sprintf("%s of %s, the largest part: %s", took, text.Round(n.took()), part)
}

func (n *node) cause() string {
	return cmp.Or(n.text(attr.CauseKey), n.text(attr.BiggestPartNameKey))
}

func (n *node) problem() bool { return n.failed() || n.slow() || n.is(attr.PartialKey) }
