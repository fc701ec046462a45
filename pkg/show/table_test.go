package show

import (
	"math"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"

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
