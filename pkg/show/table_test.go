package show

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/test/harness"
)

// Overlapping and nested spans count once in a share.
func TestStatistics(t *testing.T) {
	both := []span{run("iptables", 0, 40), run("iptables", 20, 60), run("ip", 60, 60)}
	s := collected(
		add(100, both...).with(attribute.Float64("cniscope.time.commands_ms", 60),
			attribute.Float64("cniscope.time.between_runs_ms", 40)),
		add(300).failing("bridge exited 1").
			with(attribute.Bool("cniscope.slow", true), attribute.String("cniscope.cause", "lock")),
	).Statistics()
	if s.Calls != 2 || s.Pods != 2 || s.Failed != 1 || s.Slow != 1 || len(s.Kinds) != 1 {
		t.Fatalf("%+v", s)
	}
	for row, want := range map[Row]struct{ count, p50, max, sum, share float64 }{
		{"run", "bridge"}:        {2, 200, 300, 400, 1},
		{"command", "iptables"}:  {2, 40, 40, 80, 0.15},
		{"command", "ip"}:        {1, 0, 0, 0, 0},
		{"part", "commands"}:     {1, 60, 60, 60, 0.15},
		{"part", "between runs"}: {1, 40, 40, 40, 0.1},
		{"cause", "lock"}:        {1, 300, 300, 300, 0.75},
	} {
		found := false
		for _, got := range s.Kinds[0].Rows {
			if got.Row != row {
				continue
			}
			found = true
			for i, v := range [][2]float64{
				{float64(got.Count), want.count},
				{got.P50, want.p50},
				{got.Max, want.max},
				{got.Sum, want.sum},
				{got.Share, want.share},
			} {
				if math.Abs(v[0]-v[1]) > 1e-6 {
					t.Errorf("%v: number %d is %v, want %v", row, i, v[0], v[1])
				}
			}
		}
		if !found {
			t.Errorf("%v is missing", row)
		}
	}
}

func TestReducedCallsSayNothingOfWhatIsInThem(t *testing.T) {
	reduced := span{kind: "call", name: "CNI ADD", to: 900}.with(attribute.Bool("cniscope.reduced", true),
		attribute.Float64("cniscope.time.commands_ms", 450))
	for _, row := range collected(add(100, run("iptables", 0, 50)), reduced).Statistics().Kinds[0].Rows {
		if want := map[string]float64{
			"iptables": 0.5, "bridge": 1,
			"commands": 0.45,
		}[row.Name]; math.Abs(row.Share-want) > 1e-6 {
			t.Errorf("%v: %v, want %v", row.Row, row.Share, want)
		}
	}
}

func TestStatisticsOfWaits(t *testing.T) {
	lock := span{
		kind: "lock", name: "wait for lock", from: 10,
		to: 60,
	}.with(attribute.String("cniscope.lock.path", "/run/xtables.lock"))
	s := collected(add(100, lock)).Statistics()
	if row := s.Kinds[0].Rows[1]; row.Row != (Row{"lock", "/run/xtables.lock"}) || row.Share != 0.5 {
		t.Errorf("%+v", row)
	}
}

// A call has one cause, however often: the judge's, else its largest part.
func TestCausesAreFew(t *testing.T) {
	part, name := attribute.String("cniscope.biggest_part",
		"command iptables (40 times)"), attribute.String("cniscope.biggest_part_name", "command iptables")
	rows := collected(add(100).with(part, name), add(100).
		with(part, name, attribute.String("cniscope.cause", "many_commands"))).Statistics().Kinds[0].Rows
	for _, cause := range []string{"command iptables", "many_commands"} {
		if !slices.ContainsFunc(rows, func(s Statistic) bool { return s.Row == Row{"cause", cause} && s.Calls == 1 }) {
			t.Errorf("%s is not among %+v", cause, rows)
		}
	}
}

func TestTheTableIsDrawn(t *testing.T) {
	s := collected(
		add(100, append(runs(3, "iptables", 10), run("ip", 80, 90))...).
			with(attribute.String("cniscope.biggest_part_name", "plugin bridge")),
		add(200, runs(5, "iptables", 10)...).failing("bridge exited 1").with(attribute.String("cniscope.cause", "lock")),
	).Statistics()
	var b strings.Builder
	harness.Check(t, Table(&b, s, Options{Width: 100}))
	drawn, _, _ := strings.Cut(b.String(), "\nshare is")
	equal(t, drawn, `
2 calls of 2 pods, 300ms in all: 1 failed, 0 slow

Where the time of all calls went
  time: unexplained 100 %

CNI ADD eth0  2 calls of 2 pods  ✗ 1 failed
                     count       p50       max       sum  share
  call                   2     150ms     200ms     300ms 100.0%
  run
    bridge               2     150ms     200ms     300ms 100.0%
  command
    iptables             8      10ms      10ms      80ms  26.7%
    ip                   1      10ms      10ms      10ms   3.3%  in 1 call
  dominant cause
    lock                 1     200ms     200ms     200ms  66.7%
    plugin bridge        1     100ms     100ms     100ms  33.3%`)
}

// Number and sum are exact, quantiles approximate.
func TestManyValuesAreASample(t *testing.T) {
	room := &room{valuesMax, rowsMost}
	var few, many values
	for i := range exactly {
		few.add(float64(i), room)
	}
	const n = 50 * exactly
	for i := range n { // sorted input is the worst case
		many.add(float64(i), room)
	}
	if few.sampled() || few.n != exactly || few.total() != exactly*(exactly-1)/2 {
		t.Errorf("few: %d of %d", len(few.kept), few.n)
	}
	if !many.sampled() || len(many.kept) != exactly || many.n != n || many.total() != n*(n-1)/2 {
		t.Errorf("many: %d of %d, sum %f", len(many.kept), many.n, many.total())
	}
	d := distribution(many)
	if !d.Sampled || math.Abs(d.P50/n-0.5) > 0.02 || math.Abs(*d.P99/n-0.99) > 0.005 {
		t.Errorf("%+v", d)
	}
	var late values
	room.values = 0
	for i := range 1000 {
		late.add(float64(i), room)
	}
	if len(late.kept) != valuesLeast || late.n != 1000 {
		t.Errorf("without room: %d of %d", len(late.kept), late.n)
	}
}

// Distinct names are bounded, and all are counted.
func TestASampleHasSoManyRows(t *testing.T) {
	const n = 3000
	s := Collect(func(yield func(*tracepb.ResourceSpans) bool) {
		for i := range n {
			rs := &tracepb.ResourceSpans{ScopeSpans: []*tracepb.ScopeSpans{{Spans: []*tracepb.Span{
				{Name: fmt.Sprint("CNI ", i), SpanId: []byte("call"), EndTimeUnixNano: 5, Attributes: kinded("call")},
				{
					Name: fmt.Sprint("command ", i), SpanId: []byte("it"), ParentSpanId: []byte("call"), EndTimeUnixNano: 5,
					Attributes: kinded("command"),
				},
			}}}}
			if !yield(rs) {
				return
			}
		}
	})
	stats := s.Statistics()
	rows, counted := 0, 0
	for _, kind := range stats.Kinds {
		rows += len(kind.Rows)
		for _, row := range kind.Rows {
			counted += row.Count
		}
	}
	if stats.Calls != n || len(stats.Kinds) != populationsMost || counted != n || rows > rowsMost+populationsMost {
		t.Errorf("%d calls of %d kinds, %d commands in %d rows", stats.Calls, len(stats.Kinds), counted, rows)
	}
}

func kinded(kind string) []*commonpb.KeyValue {
	return protobuf([]attribute.KeyValue{attribute.String("cniscope.kind", kind)})
}

func TestLimits(t *testing.T) {
	zero, two := 0, 2
	slow := add(900, run("policyctl", 100, 800)).with(attribute.String("cniscope.verdict", "700 ms in policyctl"))
	many := add(100, runs(3, "iptables", 10)...)
	broken := add(3).failing("bridge exited 1")
	reduced := span{kind: "call", name: "CNI ADD", to: 100}.with(attribute.Bool("cniscope.reduced", true),
		attribute.Int("cniscope.commands", 30))

	for name, c := range map[string]struct {
		limits Limits
		calls  []span
		want   []string
	}{
		"a call": {
			Limits{Call: 500 * time.Millisecond},
			[]span{slow, many},
			[]string{"shop/web-0  CNI ADD eth0 took 900ms, more than 500ms; 700 ms in policyctl (--max-call)"},
		},
		"exactly": {Limits{Call: 900 * time.Millisecond}, []span{slow}, nil},
		"a command": {
			Limits{Command: 250 * time.Millisecond},
			[]span{many, slow},
			[]string{"shop/web-1  CNI ADD eth0 ran policyctl for 700ms, more than 250ms (--max-command)"},
		},
		"commands": {
			Limits{Commands: &two},
			[]span{many, slow},
			[]string{"shop/web-0  CNI ADD eth0 ran 3 commands, more than 2: iptables 3 times (--max-commands)"},
		},
		"none may be run": {
			Limits{Commands: &zero},
			[]span{slow, broken},
			[]string{"shop/web-0  CNI ADD eth0 ran 1 command, more than 0: policyctl 1 time (--max-commands)"},
		},
		"spans that are not": {
			Limits{Commands: &two},
			[]span{reduced},
			[]string{"shop/web-0  CNI ADD eth0 ran 30 commands, more than 2 (--max-commands)"},
		},
		"none may fail": {
			Limits{Failed: &zero},
			[]span{broken, slow},
			[]string{"shop/web-0  CNI ADD eth0 failed: bridge exited 1 (--max-failed)"},
		},
		"two may fail": {Limits{Failed: &two}, []span{broken, broken}, nil},
		"several at once": {
			Limits{Call: time.Millisecond, Failed: &zero},
			[]span{broken},
			[]string{
				"shop/web-0  CNI ADD eth0 took 3ms, more than 1ms; bridge exited 1 (--max-call)",
				"shop/web-0  CNI ADD eth0 failed: bridge exited 1 (--max-failed)",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			checked := c.limits.Check(pods(c.calls...))
			if checked.Calls != len(c.calls) || len(checked.Crossed) != len(c.want) {
				t.Fatalf("%+v", checked)
			}
			for i, got := range checked.Crossed {
				harness.Equal(t, got.String(), c.want[i])
			}
		})
	}
	if checked := (Limits{Call: time.Second}).
		Check(pods(reduced, slow.with(attribute.Bool("cniscope.partial", true)))); checked.Partial != 2 {
		t.Errorf("%+v", checked)
	}
}
