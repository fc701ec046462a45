package baseline

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
)

const floor = 100 * time.Millisecond

type shape func(r *rand.Rand) time.Duration

func logNormal(median time.Duration, sigma float64) shape {
	return func(r *rand.Rand) time.Duration {
		return time.Duration(float64(median) * math.Exp(sigma*r.NormFloat64()))
	}
}

func either(share float64, one, other shape) shape {
	return func(r *rand.Rand) time.Duration {
		if r.Float64() < share {
			return one(r)
		}
		return other(r)
	}
}

func constant(d time.Duration) shape { return func(*rand.Rand) time.Duration { return d } }

type stream struct {
	Book
	Call
	random *rand.Rand
	found  []Finding
}

func newStream(seed uint64) *stream {
	return &stream{
		Call: Call{
			Key: Key{Network: "pods", Plugin: "cilium-cni", Command: "ADD"}, Edition: Edition{"1", "a"},
			At: 1_700_000_000e9,
		},
		random: rand.New(rand.NewPCG(seed, 18)),
	}
}

func (s *stream) of(calls int, took shape) (all []Answer) {
	for range calls {
		s.Took = took(s.random)
		s.At += int64(time.Second)
		a := s.Take(s.Call, floor)
		s.found = append(s.found, a.Findings...)
		all = append(all, a)
	}
	return all
}

// slower counts slow answers, and returns the number of the first; 0 if there are none.
func slower(all []Answer) (n, first int) {
	for i, a := range all {
		if a.Slower {
			if n++; first == 0 {
				first = i + 1
			}
		}
	}
	return n, first
}

func shapes() map[string]shape {
	fast := logNormal(90*time.Millisecond, 0.15)
	return map[string]shape{
		"constant":            constant(150 * time.Millisecond),
		"narrow":              logNormal(150*time.Millisecond, 0.1),
		"log-normal":          logNormal(150*time.Millisecond, 0.3),
		"wide":                logNormal(150*time.Millisecond, 0.5),
		"very wide":           logNormal(150*time.Millisecond, 1),
		"below the floor":     logNormal(8*time.Millisecond, 0.5),
		"two, often":          either(0.6, fast, logNormal(200*time.Millisecond, 0.15)),
		"two, seldom":         either(0.97, fast, logNormal(900*time.Millisecond, 0.3)),
		"two, about the p99":  either(0.99, fast, logNormal(900*time.Millisecond, 0.3)),
		"one in 500 is stuck": either(0.998, fast, constant(1900*time.Millisecond)),
	}
}

func TestOrdinaryCallsAreNeverSlower(t *testing.T) {
	for name, took := range shapes() {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(20) {
				s := newStream(seed)
				if n, first := slower(s.of(2000, took)); n > 0 || len(s.found) > 0 {
					t.Errorf("seed %d: %d of 2000 ordinary calls were slower than usual, the first was number %d: %v", seed, n, first,
						s.found)
				}
			}
		})
	}
}

func TestThreeTimesSlowerIsFoundWithin20Calls(t *testing.T) {
	for name, took := range map[string]shape{
		"constant": constant(150 * time.Millisecond), "narrow": logNormal(150*time.Millisecond,
			0.1), "log-normal": logNormal(150*time.Millisecond, 0.3),
		"two, often": either(0.6, logNormal(90*time.Millisecond, 0.15), logNormal(150*time.Millisecond, 0.15)),
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(20) {
				s := newStream(seed)
				s.of(2000, took)
				answers := s.of(20, func(r *rand.Rand) time.Duration { return min(3*took(r), 1999*time.Millisecond) })
				if n, _ := slower(answers); n == 0 {
					t.Errorf("seed %d: of 20 calls that took three times as long none was slower than usual", seed)
				}
				if len(s.found) != 1 || s.found[0].Kind != Slower || s.found[0].Was.Calls < 1900 {
					t.Errorf("seed %d: found %v", seed, s.found)
				}
			}
		})
	}
}

// A spell is reported once, teaches nothing while it is short, and becomes the baseline if it lasts.
func TestASpell(t *testing.T) {
	fast, slow := logNormal(150*time.Millisecond, 0.2), logNormal(600*time.Millisecond, 0.2)
	s := newStream(1)
	s.of(1000, fast)
	usual := s.Known()[0].Usual
	answers := s.of(200, slow)
	if n, first := slower(answers); n < 190 || first != 5 {
		t.Errorf("%d of 200 slow calls were slower than usual, the first was number %d", n, first)
	}
	if last := answers[199].Usual; math.Abs(float64(last.P99-usual.P99)) > 0.05*float64(usual.P99) {
		t.Errorf("what is usual went from %s to %s while it was slow", usual, last)
	}
	if k := s.Known()[0]; !k.Slower || k.Now.Median < 500*time.Millisecond {
		t.Errorf("during the spell: %+v", k)
	}
	s.of(100, fast)
	if k := s.Known()[0]; k.Slower || s.Slower() != 0 {
		t.Errorf("after the spell: %+v", k)
	}
	s.of(600, slow)
	if n, _ := slower(s.of(200, slow)); n > 0 {
		t.Errorf("what was so slow for 600 calls is still called slower than usual, %d times of 200", n)
	}
	var kinds []Kind
	for _, f := range s.found {
		kinds = append(kinds, f.Kind)
	}
	harness.EqualSlices(t, kinds, []Kind{Slower, AsUsual, Slower, Adopted}, "found", s.found)
}

func TestFewCallsAreNoBaseline(t *testing.T) {
	s := newStream(1)
	s.of(Enough+window-1, constant(150*time.Millisecond))
	if a := s.of(1, constant(time.Second))[0]; a.Above || a.Usual != (Level{}) {
		t.Errorf("with %d calls that teach: %+v", Enough-1, a)
	}
	if a := s.of(1, constant(time.Second))[0]; !a.Above || a.Usual.Calls != Enough {
		t.Errorf("with %d calls that teach: %+v", Enough, a)
	}
}

func TestAnotherEditionIsComparedOnce(t *testing.T) {
	for name, test := range map[string]struct {
		now  Edition
		want string
	}{
		"of the program":        {Edition{"2", "a"}, "since 04:46 UTC (cilium-cni changed) ADD takes 2.3× as long"},
		"of the configuration":  {Edition{"1", "b"}, "since 04:46 UTC (the configuration changed) ADD takes 2.3× as long"},
		"of both":               {Edition{"2", "b"}, "since 04:46 UTC (cilium-cni and the configuration changed) ADD takes 2.3× as long"},
		"of one, other unknown": {Edition{"2", ""}, "since 04:46 UTC (cilium-cni changed) ADD takes 2.3× as long"},
		"none":                  {Edition{"1", "a"}, ""},
		"unknown":               {Edition{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStream(1)
			s.At = time.Date(2026, 11, 23, 3, 0, 0, 0, time.UTC).UnixNano()
			s.of(6390, constant(100*time.Millisecond))
			s.Edition = test.now
			took := 230 * time.Millisecond
			if test.want == "" {
				took = 101 * time.Millisecond
			}
			s.of(400, constant(took))
			var said []string
			for _, f := range s.found {
				said = append(said, f.String())
			}
			harness.Equal(t, strings.Join(said, "; "), test.want, "found")
		})
	}
}

// If a change is undone or followed by another too early, the comparison is with the last learned edition.
func TestAShortEditionIsNotComparedWith(t *testing.T) {
	s := newStream(1)
	s.of(500, constant(100*time.Millisecond))
	s.Build = "2"
	s.of(Compared-1, constant(900*time.Millisecond))
	s.Build = "3"
	s.of(Compared, constant(200*time.Millisecond))
	if len(s.found) != 1 || Times(s.found[0].Ratio()) != "2×" || s.found[0].Is.Calls != Compared {
		t.Errorf("found %+v", s.found)
	}
}

func TestTheOneNotSeenForLongestGoes(t *testing.T) {
	s := newStream(1)
	for i := range Keys + 10 {
		s.Program = fmt.Sprint("command-", i)
		s.of(1, constant(time.Millisecond))
		s.Program = "command-0"
		s.of(1, constant(time.Millisecond))
	}
	var programs []string
	for _, k := range s.Known() {
		programs = append(programs, k.Program)
	}
	if len(programs) != Keys || !slices.Contains(programs, "command-0") || slices.Contains(programs, "command-5") ||
		!slices.Contains(programs, "command-137") {
		t.Errorf("%d are known: %v", len(programs), programs)
	}
}

func TestOldCallsCountForLess(t *testing.T) {
	s := newStream(1)
	s.of(3*Most, logNormal(150*time.Millisecond, 0.3))
	was := s.Known()[0].Usual
	if was.Calls >= Most || was.Calls < Most/2 {
		t.Errorf("%d calls weigh", was.Calls)
	}
	if exact := 150 * math.Exp(2.326*0.3); math.Abs(was.P99.Seconds()*1000-exact) > 0.05*exact {
		t.Errorf("the 99th percentile is %s, want %.0fms", was.P99, exact)
	}
	s.of(3*Most, logNormal(75*time.Millisecond, 0.3))
	if now := s.Known()[0].Usual; now.Median > 80*time.Millisecond {
		t.Errorf("after as many calls that take half as long the median is %s", now.Median)
	}
}

// A book that was read continues like the written one, at any time.
func TestWrittenAndRead(t *testing.T) {
	for _, calls := range []int{0, 1, 19, 320, 1000, 1004, 1010, 1100} {
		s := newStream(7)
		s.of(min(calls, 1000), logNormal(150*time.Millisecond, 0.4))
		s.of(max(0, calls-1000), logNormal(800*time.Millisecond, 0.2)) // in a spell
		s.Build = "2"
		if calls == 1100 {
			s.of(10, constant(time.Second)) // not yet compared
		}
		data := harness.Must(json.Marshal(s.Document()))(t)
		d, err := Parse(data)
		if err != nil {
			t.Fatalf("after %d calls: %v", calls, err)
		}
		again := newStream(0)
		again.Book, again.Call = *d.Book(), s.Call
		s.random, again.random = rand.New(rand.NewPCG(3, 3)), rand.New(rand.NewPCG(3, 3))
		for range 700 {
			x, y := s.of(1, logNormal(500*time.Millisecond, 0.5)), again.of(1, logNormal(500*time.Millisecond, 0.5))
			if !reflect.DeepEqual(x, y) {
				t.Fatalf("after %d calls: %+v, and read again %+v", calls, x, y)
			}
		}
		one, _ := json.Marshal(s.Document())
		other, _ := json.Marshal(again.Document())
		harness.Equal(t, string(one), string(other), "after", calls, "calls, written again", one, other)
	}
}

// A node with another node's baseline detects slowness at once.
func TestForeign(t *testing.T) {
	s := newStream(1)
	s.of(1000, logNormal(150*time.Millisecond, 0.2))
	s.of(30, constant(time.Second))
	elsewhere := newStream(2)
	elsewhere.Book = *s.Document().Foreign().Book()
	elsewhere.Configuration = "another"
	if k := elsewhere.Known()[0]; k.Slower || k.Since != 0 || !k.Confident {
		t.Errorf("on the new node: %+v", k)
	}
	if n, _ := slower(elsewhere.of(200, logNormal(150*time.Millisecond, 0.2))); n > 0 || len(elsewhere.found) > 0 {
		t.Errorf("%d ordinary calls were slower than usual: %v", n, elsewhere.found)
	}
	if n, _ := slower(elsewhere.of(20, constant(600*time.Millisecond))); n < 15 {
		t.Errorf("%d of 20 slow calls were slower than usual", n)
	}
}

func TestHowItIsSaid(t *testing.T) {
	l := Level{Median: 40 * time.Millisecond, P99: 96 * time.Millisecond, Calls: 2310}
	for took, want := range map[time.Duration]string{
		480 * time.Millisecond:  "5× its p99 of 96ms (2,310 calls)",
		500 * time.Millisecond:  "5.2× its p99 of 96ms (2,310 calls)",
		1300 * time.Millisecond: "14× its p99 of 96ms (2,310 calls)",
	} {
		harness.Equal(t, l.Compare(took), want, took)
	}
	k := Key{Plugin: "bridge", Command: "ADD", Program: "iptables"}
	for _, f := range []Finding{
		{Kind: Slower, Key: k, Was: l, Is: Level{Median: 200 * time.Millisecond}},
		{Kind: AsUsual, Key: k, Was: l},
		{Kind: Adopted, Key: k, Was: l, Is: Level{P99: time.Second, Calls: 500}},
		{Kind: Ended, Key: k, Was: l},
		{Kind: Changed, Key: k, Was: l, Is: Level{Median: 20 * time.Millisecond}, Program: true},
	} {
		want := map[Kind]string{
			Slower: "iptables of bridge ADD is slower than usual: 5 of the last 20 took longer than 96ms (p99 of 2,310 " +
				"calls), by their median 5× as long as usual",
			AsUsual: "iptables of bridge ADD takes as long as usual again: 96ms (p99 of 2,310 calls)",
			Adopted: "iptables of bridge ADD was slower than usual for 500 calls, which is usual now: 1s (p99 of 500 calls)",
			Ended:   "iptables of bridge ADD is no longer called slower than usual: its baseline is learned again",
			Changed: "since 00:00 UTC (bridge changed) iptables of ADD takes 0.5× as long",
		}[f.Kind]
		harness.Equal(t, f.String(), want)
	}
}

func BenchmarkTake(b *testing.B) {
	s := newStream(1)
	s.of(2000, logNormal(150*time.Millisecond, 0.5))
	b.ReportAllocs()
	for b.Loop() {
		s.of(1, logNormal(150*time.Millisecond, 0.5))
	}
}
