package show

import (
	"io"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/test/harness"
)

func waterfalls(t *testing.T, o Options, operations ...*tracepb.ResourceSpans) string {
	t.Helper()
	var b strings.Builder
	harness.Check(t, Waterfalls(&b, slices.Values(operations), o))
	return b.String()
}

func (s span) named(name, ifname string) span {
	s.name, s.ifname = name, ifname
	return s
}

func TestWhatEveryPodHasIsFolded(t *testing.T) {
	lo, del := add(3).named("CNI ADD", "lo"), add(40).named("CNI DEL", "eth0")
	const folded = "more calls (lo, teardown), neither slow nor failed"
	for name, c := range map[string]struct {
		calls []span
		o     Options
		want  []string
		last  string
	}{
		"folded": {[]span{lo, add(100), del}, Options{}, []string{"CNI ADD eth0  100ms"}, "2 " + folded +
			", the longest 40ms; --all draws them"},
		"asked for": {
			[]span{lo, add(100), del},
			Options{All: true},
			[]string{"CNI ADD lo  3ms", "CNI ADD eth0  100ms", "CNI DEL eth0  40ms"},
			"",
		},
		"nothing else": {[]span{lo, del}, Options{}, []string{"CNI ADD lo  3ms", "CNI DEL eth0  40ms"}, ""},
		"one failed": {
			[]span{lo, del.failing("bridge exited 1")},
			Options{},
			[]string{"CNI DEL eth0  40ms"},
			"1 more call (lo), neither slow nor failed, lasted 3ms; --all draws it",
		},
		"one is too long": {
			[]span{lo, del},
			Options{Limits: Limits{Call: 30e6}},
			[]string{"CNI DEL eth0  40ms"},
			"1 more call (lo), neither slow nor failed, lasted 3ms; --all draws it",
		},
		"an ordinary call": {[]span{add(100)}, Options{}, []string{"CNI ADD eth0  100ms"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := waterfalls(t, c.o, operation("shop/web-0", c.calls...))
			var heads []string
			for line := range strings.Lines(got) {
				if head, is := strings.CutPrefix(strings.TrimRight(line, "\n"), "shop/web-0  "); is {
					head, _, _ = strings.Cut(head, "  FAILED")
					heads = append(heads, head)
				}
			}
			harness.EqualSlices(t, heads, c.want)
			if lines := strings.Split(strings.TrimSpace(got), "\n"); c.last != "" && lines[len(lines)-1] != c.last ||
				c.last == "" && strings.Contains(got, "--all") {
				t.Errorf("ends with %q, want %q", lines[len(lines)-1], c.last)
			}
		})
	}
}

// A series shows its parts.
func TestASeriesIsDrawnInSegments(t *testing.T) {
	got := waterfalls(t, Options{Width: 80},
		operation("shop/web-0", add(1000, run("iptables", 0, 100), run("iptables", 250, 350), run("iptables", 900, 1000))))
	if want := "    iptables ×3               │██   ██           ██│        1s  running 300ms\n"; !strings.Contains(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestASeriesThatOverlaps(t *testing.T) {
	got := waterfalls(t, Options{Width: 80},
		operation("shop/web-0", add(1000, run("sleep", 0, 800), run("sleep", 100, 200), run("sleep", 300, 500))))
	harness.Says(t, got, "    sleep ×3                  │████████████████    │     800ms\n")
}

func TestAFailureIsSaidOnce(t *testing.T) {
	const failure = "plugin bridge failed (code 11)"
	verdict := func(says string) attribute.KeyValue { return attribute.String("cniscope.verdict", says) }
	for name, c := range map[string]struct {
		call span
		want string
	}{
		"in the verdict":  {add(100).failing(failure).with(verdict(failure + "; agentd exited")), "FAILED\n  " + failure + "; agentd exited\n"},
		"not in it":       {add(100).failing(failure).with(verdict("90ms of 100ms: x")), "FAILED: " + failure + "\n  90ms of 100ms: x\n"},
		"without verdict": {add(100).failing(failure), "FAILED: " + failure + "\n"},
	} {
		got := waterfalls(t, Options{Width: 80}, operation("shop/web-0", c.call))
		harness.Says(t, got, "CNI ADD eth0  100ms  "+c.want)
		harness.Equal(t, strings.Count(got, failure), 1, name)
	}
}

// Forty columns suffice; remarks go below.
func TestANarrowTerminal(t *testing.T) {
	got := waterfalls(t, Options{Width: 40}, operation("shop/web-0", add(1000, append(runs(4, "iptables", 100), run("iptables", 500, 600))...)))
	_, rows, _ := strings.Cut(got, "0000000000000000\n")
	equal(t, rows, `
                 0         1s
  bridge ADD    │████████████│        1s
    iptables ×5 │█████ █     │     600ms
      running 500ms`)
}

// Text that is written at once, such as a report of doctor, has only such signs, too.
func TestASCIIWriter(t *testing.T) {
	for ascii, want := range map[bool]string{true: "x cni-folder\n  > fix\n", false: "✗ cni-folder\n  → fix\n"} {
		var out strings.Builder
		n := harness.Must(io.WriteString(Writer(&out, ascii, false), "✗ cni-folder\n  → fix\n"))(t)
		harness.Equal(t, n, len("✗ cni-folder\n  → fix\n"))
		harness.Equal(t, out.String(), want)
	}
}

func TestASCIIAlone(t *testing.T) {
	got := waterfalls(t, Options{Width: 80, ASCII: true},
		operation("shop/wéb-0", add(1000, runs(4, "iptables", 100)...).failing("bridge exited 1 → gone")))
	for _, r := range got {
		if r >= 0x80 {
			t.Errorf("%q is not ASCII: %s", r, got)
		}
	}
	if !strings.Contains(got, "    iptables x4               |########            |     400ms\n") ||
		!strings.Contains(got, "shop/w?b-0") {
		t.Error(got)
	}
}

// A report's marks and headings have colors, its evidence has none.
func TestColorsOfReports(t *testing.T) {
	var out strings.Builder
	harness.Must(io.WriteString(Writer(&out, false, true), "✗ runtime: off\n    IT IS\n  → fix\n! clock: slow\n? nri: off\nNODE  POD\n"))(t)
	harness.Equal(t, out.String(), "\x1b[31;1m✗ runtime\x1b[0m: off\n    IT IS\n  → fix\n\x1b[33;1m! clock\x1b[0m: slow\n? nri: off\n\x1b[1mNODE  POD\x1b[0m\n")
}

// Waits inside a plugin are drawn below it, with the holder.
func TestTheInsideOfAPlugin(t *testing.T) {
	part := func(kind, name string, from, to float64, about ...attribute.KeyValue) span {
		return span{kind: kind, name: name, from: from, to: to, about: about}
	}
	interfaceName := func(name string) attribute.KeyValue { return attribute.String("network.interface.name", name) }
	rtnl := attribute.String("cniscope.lock.name", "rtnl")
	eth0 := part("interface", "configure interface", 50, 59, interfaceName("eth0"), attribute.Int("cniscope.changes", 2))
	eth0.below = []span{part("request", "netlink RTM_NEWLINK", 51, 59, interfaceName("eth0"))}
	got := waterfalls(t, Options{Width: 100}, operation("shop/web-0", add(100,
		part("lock", "wait for lock", 1, 40, attribute.String("cniscope.lock.path", "/run/cni.lock"),
			attribute.String("cniscope.lock.holder_name", "other"), attribute.Int("cniscope.lock.holder_pid", 812),
			attribute.Float64("cniscope.lock.holder_age_ms", 39)),
		part("lock", "wait for lock", 40, 42, rtnl), part("lock", "wait for lock", 43, 45, rtnl),
		part("lock", "wait for lock", 46, 48, rtnl),
		eth0, part("interface", "configure interface", 60, 60, interfaceName("cni0"), attribute.Int("cniscope.changes", 1)),
		part("agent", "call agent", 61, 80, attribute.String("cniscope.agent", "agentd"),
			attribute.String("network.peer.address", "/run/agent.sock")),
		part("wait", "sleep", 81, 85, attribute.String("cniscope.system_call", "nanosleep")),
	)))
	_, rows, _ := strings.Cut(got, "0000000000000000\n")
	equal(t, rows, `
                               0                                100ms
  bridge ADD                  │██████████████████████████████████████│     100ms
    wait for lock             │▐██████████████                       │      39ms  /run/cni.lock  held by other (pid 812) for at least 39ms
    wait for lock ×3          │               █▐▐                    │       8ms  rtnl  waiting 6ms
    configure interface       │                   ███▌               │       9ms  eth0  2 changes
      netlink RTM_NEWLINK     │                   ▐██▌               │       8ms  eth0
    configure interface       │                      ▏               │        0s  cni0  1 change
    call agent                │                       ███████▌       │      19ms  agentd /run/agent.sock
    slept                     │                              ▏█▌     │       4ms  nanosleep`)
}
