package trace

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/semconv/v1.43.0"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/cniscope/cniscope/pkg/attr"
	"github.com/cniscope/cniscope/test/harness"
)

// tree builds the spans of an operation.
type tree struct {
	spans []*tracepb.Span
}

// add adds a span with a duration in ms below another one, and returns its number.
func (t *tree) add(up int, kind, name string, start, ms int, about ...attribute.KeyValue) int {
	n := len(t.spans)
	s := &tracepb.Span{
		TraceId: bytes.Repeat([]byte{1}, 16), SpanId: []byte{1, 0, 0, 0, 0, 0, byte(n >> 8), byte(n)}, Name: name,
		StartTimeUnixNano: uint64(1e9 + start*1e6), EndTimeUnixNano: uint64(1e9 + (start+ms)*1e6 + n),
	}
	if up >= 0 {
		s.ParentSpanId = t.spans[up].SpanId
	}
	add(s, attr.Kind(kind))
	add(s, about...)
	read(s)
	t.spans = append(t.spans, s)
	return n
}

// call begins a tree: number 0 is its call, 1 the run below.
func call(about ...attribute.KeyValue) *tree {
	t := &tree{}
	t.add(t.add(-1, attr.KindCall, "CNI ADD", 0, 100, about...), attr.KindRun, "portmap ADD", 0, 100,
		attr.PollMS(time.Millisecond))
	return t
}

func command(exit int, args ...string) []attribute.KeyValue {
	return []attribute.KeyValue{
		semconv.ProcessCommand("iptables"), semconv.ProcessExecutablePath("/sbin/iptables"), semconv.ProcessCommandArgs(args...),
		semconv.ProcessExitCode(exit), semconv.ProcessPID(exit + 7), attr.CPUMS(time.Millisecond), attr.Requests(3),
	}
}

func valueOf(s *tracepb.Span, key attribute.Key) *commonpb.AnyValue { return said(s, string(key)) }

func (t *tree) folded() []*tracepb.Span {
	return Fold(&tracepb.ResourceSpans{ScopeSpans: []*tracepb.ScopeSpans{{Spans: t.spans}}}).ScopeSpans[0].Spans
}

func outlined(spans []*tracepb.Span) (all []string) {
	depth := map[string]string{}
	for _, s := range spans {
		indent := depth[string(s.ParentSpanId)]
		depth[string(s.SpanId)] = indent + " "
		if n := valueOf(s, attr.FoldedCountKey).GetIntValue(); n > 0 {
			s = &tracepb.Span{Name: fmt.Sprint(s.Name, "×", n)}
		}
		all = append(all, indent+s.Name)
	}
	return all
}

func TestEventsOfAnOrdinaryCall(t *testing.T) {
	for want, x := range map[string]*tree{
		"first connection first connection":                               call(),
		"first connection first connection request request sysctl sysctl": call(attr.Verdict("slow")),
	} {
		x.add(1, attr.KindDelegate, "host-local ADD", 1, 1)
		x.add(1, attr.KindCommand, "iptables", 2, 1, command(0)...)
		for _, s := range x.spans[1:] {
			for name, key := range map[string]attribute.KeyValue{
				"first connection": attr.Reason("x"), "request": attr.RequestProtocol("rtnetlink"), "sysctl": attr.SysctlKey("net.ipv4.ip_forward"),
			} {
				e := &tracepb.Span{}
				add(e, key)
				read(e)
				encoded := &tracepb.Span_Event{Name: name}
				attach(encoded, inEvent, key)
				s.Events = append(s.Events, &tracepb.Span_Event{Name: name, Attributes: e.Attributes}, encoded)
			}
		}
		for _, s := range x.folded()[1:] {
			var got []string
			for _, e := range s.Events {
				got = append(got, e.Name)
			}
			slices.Sort(got)
			harness.Equal(t, strings.Join(got, " "), want, s.Name, "events")
		}
	}
}

func TestASeriesSaysWhatIsCommon(t *testing.T) {
	x := call(attr.Verdict("slow"))
	for i := range 3 {
		x.add(1, attr.KindCommand, "iptables", i, 1,
			append(command(0), attr.CNIName("pods"), attr.CNIID([]string{"a", "a", "b"}[i]))...)
	}
	series := x.folded()[2]
	if id, name := said(series, "cni.id"), said(series, "cni.name"); id != nil || name.GetStringValue() != "pods" {
		t.Errorf("id %v, name %v", id, name)
	}
}

func TestFolding(t *testing.T) {
	problem := attr.Verdict("slow, since")
	for name, c := range map[string]struct {
		tree func() *tree
		want []string
	}{
		"a series, whatever is between": {func() *tree {
			x := call(problem)
			x.add(1, attr.KindCommand, "iptables", 1, 1, command(0)...)
			x.add(1, attr.KindCommand, "ip6tables", 2, 1, command(0)...)
			x.add(1, attr.KindCommand, "iptables", 3, 1, command(1)...)
			return x
		}, []string{"CNI ADD", " portmap ADD", "  iptables×2", "  ip6tables"}},
		"what took long or failed stays": {func() *tree {
			x := call(problem)
			for i := range 3 {
				x.add(1, attr.KindCommand, "iptables", i, 1, command(0)...)
			}
			x.add(1, attr.KindCommand, "iptables", 4, 300, append(command(0), attr.Slow(true))...)
			fail(x.spans[x.add(1, attr.KindCommand, "iptables", 5, 1, command(4)...)], "exit 4", "4")
			return x
		}, []string{"CNI ADD", " portmap ADD", "  iptables×3", "  iptables", "  iptables"}},
		"of a series of scripts each command is a series": {func() *tree {
			x := call(problem)
			for i := range 4 {
				script := x.add(1, attr.KindCommand, "setup", 10*i, 9)
				x.add(script, attr.KindCommand, "ip", 10*i+1, 2)
				x.add(script, attr.KindCommand, "ip", 10*i+4, 2)
				x.add(script, attr.KindRequest, "netlink RTM_NEWLINK", 10*i+4, 2)
			}
			return x
		}, []string{"CNI ADD", " portmap ADD", "  setup×4", "   ip×8"}},
		"a script with a slow command in it is none of the series": {func() *tree {
			x := call(problem)
			for i := range 3 {
				script := x.add(1, attr.KindCommand, "setup", 10*i, 9)
				x.add(script, attr.KindCommand, "ip", 10*i+1, 2, attr.Slow(i == 1))
			}
			return x
		}, []string{"CNI ADD", " portmap ADD", "  setup×2", "   ip×2", "  setup", "   ip"}},
		"of an ordinary call only processes and agents stay": {func() *tree {
			x := call()
			link := x.add(1, attr.KindInterface, "configure interface", 1, 5)
			x.add(link, attr.KindRequest, "netlink RTM_NEWLINK", 1, 4)
			x.add(1, attr.KindLock, "wait for lock", 7, 2)
			x.add(1, attr.KindAgent, "call agent", 10, 5)
			x.add(1, attr.KindDAD, "wait for IPv6 DAD", 20, 5)
			return x
		}, []string{"CNI ADD", " portmap ADD", "  call agent", "  wait for IPv6 DAD"}},
		"of another one all stay": {func() *tree {
			x := call(problem)
			link := x.add(1, attr.KindInterface, "configure interface", 1, 5)
			x.add(link, attr.KindRequest, "netlink RTM_NEWLINK", 1, 4)
			x.add(1, attr.KindLock, "wait for lock", 7, 2)
			return x
		}, []string{"CNI ADD", " portmap ADD", "  configure interface", "   netlink RTM_NEWLINK", "  wait for lock"}},
		"by another file it is another command": {func() *tree {
			x := call(problem)
			x.add(1, attr.KindCommand, "iptables", 1, 1, semconv.ProcessExecutablePath("/sbin/iptables"))
			x.add(1, attr.KindCommand, "iptables", 2, 1, semconv.ProcessExecutablePath("/opt/iptables"))
			return x
		}, []string{"CNI ADD", " portmap ADD", "  iptables", "  iptables"}},
	} {
		t.Run(name, func(t *testing.T) {
			harness.EqualSlices(t, outlined(c.tree().folded()), c.want)
		})
	}
}

func TestWhatASeriesSays(t *testing.T) {
	x := call(attr.Verdict("slow, since"))
	x.add(1, attr.KindCommand, "iptables", 1, 10, command(0, "-L")...)
	x.add(1, attr.KindCommand, "iptables", 20, 30, command(1, "-t", "nat", "-C")...)
	x.add(1, attr.KindCommand, "iptables", 60, 5, append(command(0), attr.Signal("SIGPIPE"))...)
	s := x.folded()[2]
	for key, want := range map[attribute.Key]string{
		attr.FoldedCountKey: "int_value:3", attr.FoldedSumMSKey: "double_value:45.000009", attr.FoldedWorstMSKey: "double_value:30.000003",
		attr.FoldedWorstArgsKey: `array_value:{values:{string_value:"-t"}values:{string_value:"nat"}values:{string_value:"-C"}}`,
		attr.CPUMSKey:           "double_value:3", attr.RequestsKey: "int_value:9",
		"cniscope.folded.exit_codes.0": "int_value:1", "cniscope.folded.exit_codes.1": "int_value:1", "cniscope.folded.exit_codes.SIGPIPE": "int_value:1",
		semconv.ProcessExecutablePathKey: `string_value:"/sbin/iptables"`,
		semconv.ProcessPIDKey:            "<nil>", semconv.ProcessExitCodeKey: "<nil>", semconv.ProcessCommandArgsKey: "<nil>",
	} {
		harness.Equal(t, string(bytes.ReplaceAll([]byte(valueOf(s, key).String()), []byte(" "), nil)), want, key)
	}
	if s.StartTimeUnixNano != 1e9+1e6 || s.EndTimeUnixNano != 1e9+65e6+4 || !bytes.Equal(s.SpanId, x.spans[2].SpanId) {
		t.Errorf("it is %v", s)
	}
}

// For trees of any shape slow and failed spans stay, and folded ones add up.
func FuzzFold(f *testing.F) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		data := make([]byte, 4*(1+random.IntN(120)))
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		f.Add(data, random.Uint64())
	}
	f.Fuzz(func(t *testing.T, data []byte, seed uint64) {
		x := wild(data[:min(len(data), 4*500)])
		given := make([]*tracepb.Span, len(x.spans))
		for i, s := range x.spans {
			given[i] = proto.CloneOf(s)
		}
		folded := x.folded()
		for i, s := range x.spans {
			if !proto.Equal(s, given[i]) {
				t.Fatalf("%s was changed", s.Name)
			}
		}
		keepsWhatMatters(t, given, folded)
		if got, want := account(folded), account(given); !maps.Equal(got, want) {
			t.Errorf("of commands there is now %v, there was %v", got, want)
		}
		if again := (&tree{folded}).folded(); !slices.Equal(texts(again), texts(folded)) {
			t.Error("folded again, it is something else")
		}
		rand.New(rand.NewPCG(seed, 0)).
			Shuffle(len(x.spans), func(i, j int) { x.spans[i], x.spans[j] = x.spans[j], x.spans[i] })
		if shuffled := x.folded(); !slices.Equal(texts(shuffled), texts(folded)) {
			t.Error("the order of spans matters")
		}
	})
}

func wild(data []byte) *tree {
	kinds := []string{
		attr.KindCommand, attr.KindCommand, attr.KindCommand, attr.KindRun, attr.KindInterface,
		attr.KindRequest, attr.KindLock, attr.KindAgent, attr.KindDelegate, attr.KindDAD,
	}
	x := call(nonZero(attr.Slow(len(data) > 1 && data[1]%2 == 0))...)
	for ; len(data) >= 4; data = data[4:] {
		kind := kinds[int(data[0])%len(kinds)]
		about := []attribute.KeyValue{
			semconv.ProcessExitCode(int(data[3] % 3)), attr.CPUMS(time.Duration(data[2]) * 1237),
			attr.Requests(int(data[2])),
		}
		about = append(about, nonZero(attr.Slow(data[3]%16 == 0), attr.Outlived(data[3]%32 == 1))...)
		n := x.add(int(data[1])%len(x.spans), kind, fmt.Sprint(kind, data[0]%2), int(data[2]), int(data[3]), about...)
		if data[3]%16 == 2 {
			fail(x.spans[n], "it failed", "1")
		}
	}
	return x
}

// keepsWhatMatters checks that slow and failed spans stay, and those outside of commands.
func keepsWhatMatters(t *testing.T, given, folded []*tracepb.Span) {
	t.Helper()
	now := map[string]*tracepb.Span{}
	for _, s := range folded {
		if up := string(s.ParentSpanId); up != "" && now[up] == nil {
			t.Errorf("%s comes before what it is below", s.Name)
		}
		now[string(s.SpanId)] = s
	}
	for _, s := range given {
		b := branches([]*tracepb.Span{encoded(s)})[0]
		small := slices.Contains([]string{attr.KindCommand, attr.KindInterface, attr.KindRequest, attr.KindLock},
			b.value(attr.KindKey).GetStringValue())
		if small && !b.remarkable() {
			continue
		}
		is := now[string(s.SpanId)]
		if is == nil || !bytes.Equal(is.ParentSpanId, s.ParentSpanId) || is.EndTimeUnixNano != s.EndTimeUnixNano ||
			!proto.Equal(is.Status, s.Status) {
			t.Errorf("%s is now %v", s, is)
		}
	}
}

func account(spans []*tracepb.Span) map[string]int64 {
	sums := map[string]int64{}
	for _, s := range spans {
		if valueOf(s, attr.KindKey).GetStringValue() != attr.KindCommand {
			continue
		}
		ns := func(key attribute.Key) int64 { return int64(valueOf(s, key).GetDoubleValue()*1e6 + 0.5) }
		sums[s.Name+" cpu"] += ns(attr.CPUMSKey)
		sums[s.Name+" requests"] += valueOf(s, attr.RequestsKey).GetIntValue()
		n := valueOf(s, attr.FoldedCountKey).GetIntValue()
		took := int64(s.EndTimeUnixNano - s.StartTimeUnixNano)
		if n == 0 {
			sums[s.Name]++
			sums[s.Name+" took"] += took
			sums[fmt.Sprint(s.Name, " exit ", valueOf(s, semconv.ProcessExitCodeKey).GetIntValue())]++
		} else {
			sums[s.Name] += n
			sums[s.Name+" took"] += ns(attr.FoldedSumMSKey)
			for code := range 3 {
				if ended := valueOf(s, attribute.Key(fmt.Sprint(attr.FoldedExitCodesKey, ".", code))); ended != nil {
					sums[fmt.Sprint(s.Name, " exit ", code)] += ended.GetIntValue()
				}
			}
			took = ns(attr.FoldedWorstMSKey)
		}
		sums[s.Name+" worst"] = max(sums[s.Name+" worst"], took)
	}
	return sums
}

func texts(spans []*tracepb.Span) (all []string) {
	for _, s := range spans {
		data, _ := proto.MarshalOptions{Deterministic: true}.Marshal(s)
		all = append(all, string(data))
	}
	slices.Sort(all)
	return all
}

// The history and each destination take the same bytes.
func TestSpansAreEncodedOnce(t *testing.T) {
	all := Of(&tracepb.ResourceSpans{SchemaUrl: "a"})
	first := harness.Must(all.Encoded())(t)
	again, _ := all.Encoded()
	var got tracepb.TracesData
	harness.Check(t, proto.Unmarshal(first, &got))
	if &first[0] != &again[0] || cap(first) != len(first) || got.ResourceSpans[0].SchemaUrl != "a" {
		t.Errorf("%v, with room for %d bytes; the second time at %p, not %p", &got, cap(first)-len(first), again, first)
	}
}

func TestAttributesAreReadAsTheyWereAdded(t *testing.T) {
	text := func(s string) *commonpb.AnyValue {
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: s}}
	}
	list := &commonpb.ArrayValue{Values: []*commonpb.AnyValue{text("a"), text("")}}
	s := &tracepb.Span{}
	add(s, attribute.Bool("a", false), attribute.Int("b", -1), attribute.Float64("c", 0.5), attribute.String("d", "\xff"))
	add(s, attribute.StringSlice("e", []string{"a", ""}))
	read(s)
	want := []*commonpb.KeyValue{
		{Key: "a", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{}}},
		{Key: "b", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: -1}}},
		{Key: "c", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: 0.5}}},
		{Key: "d", Value: text("\ufffd")},
		{Key: "e", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: list}}},
	}
	if !proto.Equal(s, &tracepb.Span{Attributes: want}) {
		t.Error(s)
	}
}
