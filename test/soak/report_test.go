//go:build linux

package soak

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

// report is what docs/reliability.md says of a soak.
func report(entries []entry) string {
	var out strings.Builder
	pods, failed, violations, runs, tracedRuns, checked, faults := 0, 0, 0, 0, 0, 0, 0
	excused, lost := map[string]int{}, map[string]float64{}
	recovery := map[string][]float64{}
	unaccounted, untrue := 0, 0
	for _, e := range entries {
		pods += len(e.Pods)
		for _, p := range e.Pods {
			if p.Err != "" {
				failed++
			}
		}
		violations += len(e.Violations)
		runs, tracedRuns, checked = runs+e.Account.Runs, tracedRuns+e.Account.Traced, checked+e.Account.Checked
		unaccounted, untrue = unaccounted+len(e.Account.Unaccounted), untrue+len(e.Account.False)
		for why, n := range e.Account.Excused {
			excused[why] += n
		}
		for why, n := range e.Account.Lost {
			lost[why] += n
		}
		faults += len(e.Faults)
		for _, f := range e.Faults {
			recovery[f.Kind] = append(recovery[f.Kind], e.Recovery)
		}
	}
	fmt.Fprintf(&out, "%d rounds, %d pods, %d faults of %d kinds\n", len(entries), pods, faults, len(recovery))
	fmt.Fprintf(&out, "pods that failed: %d; violations of any kind: %d\n", failed, violations)
	fmt.Fprintf(&out, "runs of plugins: %d; in a trace: %d; excused: %v; not accounted for: %d; counted as lost: %v\n", runs, tracedRuns, excused, unaccounted, lost)
	fmt.Fprintf(&out, "spans of calls held against the truth: %d; false: %d\n\n", checked, untrue)
	out.WriteString("| fault | times | all as before after, median | longest |\n|---|---|---|---|\n")
	for _, kind := range sorted(recovery) {
		r := recovery[kind]
		slices.Sort(r)
		fmt.Fprintf(&out, "| %s | %d | %.1f s | %.1f s |\n", kind, len(r), r[len(r)/2], r[len(r)-1])
	}
	out.WriteString("\n| growth per 1,000 pods | slope | 95 % interval |\n|---|---|---|\n")
	for _, g := range growths() {
		slope, half, n := growth(entries, g.of)
		if n < 3 {
			continue
		}
		fmt.Fprintf(&out, "| %s | %+.2f | %+.2f to %+.2f |\n", g.name, slope, slope-half, slope+half)
	}
	return out.String()
}

func sorted[V any](m map[string]V) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

type grows struct {
	name string
	of   func(sample) float64
}

// growths are what must not grow.
func growths() []grows {
	return []grows{
		{"anonymous memory, KiB", func(s sample) float64 { return s.RSS }},
		{"descriptors", func(s sample) float64 { return s.FDs }},
		{"goroutines", func(s sample) float64 { return s.Goroutines }},
		{"BPF maps", func(s sample) float64 { return s.Maps }},
		{"BPF programs", func(s sample) float64 { return s.Programs }},
		{"processes followed", func(s sample) float64 { return s.Procs }},
	}
}

// growth is how much more there is after 1,000 more pods of the same life: one slope for all lives, each with a level
// of its own, and the half of its 95 % interval. n is how many degrees of freedom that has.
func growth(entries []entry, of func(sample) float64) (slope, half float64, n int) {
	lives := map[int][][2]float64{}
	life, at := 0, 0
	for _, e := range entries {
		if e.Sample.Pods == 0 {
			continue
		}
		if e.Sample.Life != at || e.Sample.Pods < int(last(lives[life])) { // numbers begin anew when a soak goes on
			life, at = life+1, e.Sample.Life
		}
		lives[life] = append(lives[life], [2]float64{float64(e.Sample.Pods), of(e.Sample)})
	}
	var sxx, sxy, syy float64
	for _, points := range lives {
		var mx, my float64
		for _, p := range points {
			mx, my = mx+p[0]/float64(len(points)), my+p[1]/float64(len(points))
		}
		for _, p := range points {
			sxx, sxy, syy = sxx+(p[0]-mx)*(p[0]-mx), sxy+(p[0]-mx)*(p[1]-my), syy+(p[1]-my)*(p[1]-my)
		}
		n += len(points) - 1
	}
	n--
	if n < 1 || sxx == 0 {
		return 0, 0, 0
	}
	slope = sxy / sxx
	return 1000 * slope, 1000 * 1.96 * math.Sqrt(max(0, syy-slope*sxy)/float64(n)/sxx), n
}

func last(points [][2]float64) float64 {
	if len(points) == 0 {
		return 0
	}
	return points[len(points)-1][0]
}

// The report of a diary: CNISCOPE_SOAK_DIARY names it.
func TestReport(t *testing.T) {
	path := os.Getenv("CNISCOPE_SOAK_DIARY")
	if path == "" {
		t.Skip("no diary: make soak-report")
	}
	d, err := openDiary(path)
	harness.Check(t, err)
	t.Log("\n" + report(d.entries))
	harness.Check(t, d.close())
}

func TestGrowthIsWithinALife(t *testing.T) {
	var entries []entry
	for life, level := range []float64{100, 900, 300} {
		for pods := 10; pods <= 50; pods += 10 {
			entries = append(entries, entry{Sample: sample{Life: life + 1, Pods: pods, RSS: level + 0.5*float64(pods)}})
		}
	}
	slope, half, n := growth(entries, func(s sample) float64 { return s.RSS })
	if math.Abs(slope-500) > 1e-6 || half > 1e-3 || n != 11 {
		t.Errorf("%v ± %v of %d", slope, half, n)
	}
}
