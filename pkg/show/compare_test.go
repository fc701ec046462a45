package show

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/test/harness"
)

// jittered returns n calls, each up to 10 % longer or shorter.
func jittered(seed uint64, n int, call func(longer float64) span) *Sample {
	random := rand.New(rand.NewPCG(seed, 0))
	var calls []span
	for range n {
		calls = append(calls, call(0.9+0.2*random.Float64()))
	}
	return collected(calls...)
}

func words(c Comparison) map[string]Word {
	all := map[string]Word{}
	for _, kind := range c.Kinds {
		all[kind.Name] = kind.Word
		for _, row := range kind.Rows {
			all[row.what()] = row.Word
		}
	}
	return all
}

// iptables runs 40 times instead of 11, an agent vanished, and a sleep appeared.
func TestCompareSaysWhatChanged(t *testing.T) {
	before := jittered(1, 20, func(x float64) span {
		return add(100*x, append(runs(11, "iptables", 1.5*x), span{kind: "agent", name: "call agent", from: 50, to: 60},
			run("ip", 70, 75*x))...)
	})
	after := jittered(2, 20, func(x float64) span {
		return add(500*x, append(runs(40, "iptables", 1.5*x), run("sleep", 100, 400), run("ip", 70, 75*x))...)
	})
	got := words(Compare(before, after))
	for what, want := range map[string]Word{
		"CNI ADD eth0": Slower, "run bridge": Slower, "command iptables": Slower,
		"command sleep": Appeared, "agent call agent": Vanished,
	} {
		harness.Equal(t, got[what], want, what)
	}
	for what, word := range words(Compare(after, before)) {
		opposite := map[Word]Word{Slower: Faster, Faster: Slower, Appeared: Vanished, Vanished: Appeared, Same: Same}
		harness.Equal(t, word, opposite[got[what]], "the other way round", what)
	}
}

// Of sixty pairs of equal recordings, few show a difference.
func TestCompareSpeaksOfNoDifferenceByChance(t *testing.T) {
	names := strings.Fields("ip iptables nft bridge sysctl tc ethtool arping modprobe conntrack ipset ovs-vsctl")
	one := func(seed uint64) *Sample {
		random := rand.New(rand.NewPCG(seed, 1))
		return jittered(seed, 12, func(x float64) span {
			var below []span
			for i, name := range names {
				below = append(below, run(name, float64(i), float64(i)+mostlyLittle(random)))
			}
			return add(100*x, below...)
		})
	}
	wrong := 0
	const pairs = 60
	for i := range uint64(pairs) {
		for _, word := range words(Compare(one(2*i), one(2*i+1))) {
			if word != Same && word != Unclear {
				wrong++
				break
			}
		}
	}
	if wrong > pairs/10 {
		t.Errorf("%d of %d", wrong, pairs)
	}
}

// Skewed to short durations, like commands.
func mostlyLittle(random *rand.Rand) float64 {
	return 1 + 49*random.Float64()*random.Float64()*random.Float64()
}

// Three calls per side are never significant.
func TestCompareSaysWhenThereIsTooLittle(t *testing.T) {
	got := words(Compare(collected(add(100), add(101), add(102)), collected(add(900), add(901), add(902))))
	if got["CNI ADD eth0"] != Unclear || got["run bridge"] != Unclear {
		t.Error(got)
	}
	// Equal values need no more calls.
	got = words(Compare(collected(add(100), add(101), add(102)), collected(add(100), add(101), add(103))))
	harness.Equal(t, got["CNI ADD eth0"], Same)
}

// An apparent difference with three calls is never reported as equal.
func TestCompareNeverCallsAFewCallsTheSame(t *testing.T) {
	var before, after []span
	for i := range 43 {
		if i < 3 {
			before = append(before, add([]float64{100, 900, 120}[i]))
		}
		after = append(after, add(400+float64(i%7)*90))
	}
	c := Compare(collected(before...), collected(after...))
	if got := c.Kinds[0].Word; got != Unclear || c.Kinds[0].Ratio < 2 {
		t.Errorf("%q: %+v", got, c.Kinds[0].Change)
	}
	var b strings.Builder
	harness.Check(t, Differences(&b, c, Options{Width: 120}))
	if !strings.HasPrefix(b.String(), "CNI ADD eth0  too few calls to tell: median 120ms") ||
		strings.Contains(b.String(), "no significant") {
		t.Error(b.String())
	}
}

// A command in 10 % of the calls, then in nearly all.
func TestCompareCounts(t *testing.T) {
	some := func(seed uint64, of int) *Sample {
		n := 0
		return jittered(seed, 30, func(x float64) span {
			if n++; n%10 < of {
				return add(100, run("modprobe", 10, 10+40*x))
			}
			return add(100)
		})
	}
	c := Compare(some(1, 1), some(2, 9))
	i := slices.IndexFunc(c.Kinds[0].Rows, func(c Change) bool { return c.Name == "modprobe" })
	if row := c.Kinds[0].Rows[i]; row.Word != More || row.A.Calls != 3 || row.B.Calls != 27 || row.CountRatio < 8.9 ||
		row.CountRatio > 9.1 {
		t.Errorf("%+v", row)
	}
}

// Kinds on one side only are reported as such.
func TestCompareCallsThatAreNew(t *testing.T) {
	var b strings.Builder
	c := Compare(collected(add(100)), Collect(func(func(*tracepb.ResourceSpans) bool) {}))
	harness.Check(t, Differences(&b, c, Options{Width: 120}))
	equal(t, b.String(), "CNI ADD eth0  vanished: 1 call → none")
}

func TestDifferencesAreDrawn(t *testing.T) {
	before := jittered(1, 20, func(x float64) span {
		return add(100*x, append(runs(11, "iptables", 1.5*x), run("ip", 70, 75))...)
	})
	after := jittered(2, 20, func(x float64) span {
		return add(500*x, append(runs(40, "iptables", 1.5*x), run("sleep", 100, 400), run("ip", 70, 75))...)
	})
	var b strings.Builder
	harness.Check(t, Differences(&b, Compare(before, after), Options{Width: 120}))
	equal(t, b.String(), `
CNI ADD eth0  slower: median 96.1ms ±4% → 498.8ms ±5%  ×5.2  (20 → 20 calls)

CNI ADD eth0
                                             time per call   ratio         number            time of one
  slower           run bridge             96.1ms → 498.8ms    ×5.2          1 → 1       96.1ms → 498.8ms
  slower           command iptables        15.9ms → 59.9ms    ×3.8        11 → 40         1.44ms → 1.5ms
  appeared         command sleep                   → 300ms                    → 1                → 300ms
  no significant change: command ip`)
}
