//go:build linux

package soak

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

func report(entries []entry) string {
	var out strings.Builder
	pods, failed, violations, runs, tracedRuns, checked, faults := 0, 0, 0, 0, 0, 0, 0
	excused, lost, counted := map[string]int{}, map[string]float64{}, 0
	took := map[string][]float64{} // of pods, by the round's only fault
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
		counted += e.Account.CountedAsLost
		if alone := kindOf(e); alone != "" {
			for _, p := range e.Pods {
				took[alone] = append(took[alone], p.MS/1e3)
			}
		}
		for why, n := range e.Account.Excused {
			excused[why] += n
		}
		for why, n := range e.Account.Lost {
			lost[why] += n
		}
		for _, f := range e.Faults {
			if f.Unsupported {
				continue
			}
			faults++
			recovery[f.Kind] = append(recovery[f.Kind], e.Recovery)
		}
	}
	fmt.Fprintf(&out, "%d rounds, %d pods, %d faults of %d kinds\n", len(entries), pods, faults, len(recovery))
	fmt.Fprintf(&out, "pods that failed: %d; violations of any kind: %d\n", failed, violations)
	fmt.Fprintf(&out, "runs of plugins: %d; in a trace: %d; excused: %v; counted as lost: %d (%v); not accounted for: %d\n", runs, tracedRuns, excused, counted, lost, unaccounted)
	fmt.Fprintf(&out, "spans of calls held against the truth: %d; false: %d\n\n", checked, untrue)
	out.WriteString("| fault | times | all as before after, median | longest | a pod beside it alone, median | longest |\n|---|---|---|---|---|---|\n")
	for _, kind := range sorted(recovery) {
		fmt.Fprintf(&out, "| %s | %d | %s | %s |\n", kind, len(recovery[kind]), medianAndMost(recovery[kind]), medianAndMost(took[kind]))
	}
	if quiet := took[none]; len(quiet) > 0 {
		fmt.Fprintf(&out, "| %s | | | | %s |\n", none, medianAndMost(quiet))
	}
	out.WriteString("\n| pods at once, no fault | cniscope | pods | failed | median | p99 |\n|---|---|---|---|---|---|\n")
	beside(&out, entries)
	out.WriteString("\n| growth per 1,000 pods | slope | 95 % interval |\n|---|---|---|\n")
	for _, g := range growths() {
		slope, half, n := growth(entries, g.of)
		if n < enough {
			continue
		}
		fmt.Fprintf(&out, "| %s | %+.2f | %+.2f to %+.2f |\n", g.name, slope, slope-half, slope+half)
	}
	return out.String()
}

// beside compares rounds without faults with and without cniscope.
func beside(out *strings.Builder, entries []entry) {
	type kind struct {
		atOnce  int
		control bool
	}
	took, failed := map[kind][]float64{}, map[kind]int{}
	for _, e := range entries {
		if len(e.Faults) > 0 {
			continue
		}
		k := kind{1, e.Plan.Control}
		if e.Plan.Burst {
			k.atOnce = len(e.Pods)
		}
		for _, p := range e.Pods {
			if p.Err != "" {
				failed[k]++
			}
			took[k] = append(took[k], p.MS/1e3)
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(took), func(a, b kind) int { return cmp.Compare(a.atOnce, b.atOnce) }) {
		if k.control {
			continue // compared with cniscope
		}
		for _, control := range []bool{false, true} {
			k.control = control
			t := took[k]
			if len(t) == 0 {
				continue
			}
			slices.Sort(t)
			with := "yes"
			if control {
				with = "no"
			}
			fmt.Fprintf(out, "| %d | %s | %d | %d | %.2f s | %.2f s |\n", k.atOnce, with, len(t), failed[k], t[len(t)/2], t[len(t)*99/100])
		}
	}
}

const none = "none"

// kindOf returns the fault of a round of single pods; "" for two faults and bursts.
func kindOf(e entry) string {
	switch {
	case e.Plan.Burst || e.Plan.Control || len(e.Faults) > 1:
		return ""
	case len(e.Faults) == 0:
		return none
	}
	return e.Faults[0].Kind
}

func medianAndMost(values []float64) string {
	if len(values) == 0 {
		return " | "
	}
	slices.Sort(values)
	return fmt.Sprintf("%.1f s | %.1f s", values[len(values)/2], values[len(values)-1])
}

func sorted[V any](m map[string]V) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

const (
	// warm is the number of pods until a life's caches are full, large the burst size that determines memory.
	warm, large = 200, 100
	// enough is the minimum of degrees of freedom for a slope.
	enough = 10
)

// grown names growth above 5 per 1,000 pods and twice the half interval. Memory grows to the
// history's bound.
func grown(entries []entry) (found []string) {
	for _, g := range growths()[2:] {
		if slope, half, n := growth(entries, g.of); n >= enough && slope > 5 && slope > 2*half {
			found = append(found, fmt.Sprintf("%s: %.1f ± %.1f per 1,000 pods", g.name, slope, half))
		}
	}
	return found
}

type grows struct {
	name string
	of   func(sample) float64
}

func growths() []grows {
	return []grows{
		{"anonymous memory, KiB", func(s sample) float64 { return s.RSS }},
		{"Go's heap, KiB", func(s sample) float64 { return s.Heap }},
		{"descriptors", func(s sample) float64 { return s.FDs }},
		{"goroutines", func(s sample) float64 { return s.Goroutines }},
		{"BPF maps", func(s sample) float64 { return s.Maps }},
		{"BPF programs", func(s sample) float64 { return s.Programs }},
		{"processes followed", func(s sample) float64 { return s.Procs }},
	}
}

// growth returns the increase per 1,000 pods, half its 95 % interval, and the degrees of freedom:
// one slope with a level per life.
func growth(entries []entry, of func(sample) float64) (slope, half float64, n int) {
	lives := map[int][][2]float64{}
	life, at := 0, 0
	for _, e := range entries {
		if e.Sample.Pods < warm || len(e.Pods) > large {
			continue
		}
		if e.Sample.Life != at || e.Sample.Pods < int(last(lives[life])) { // numbers restart with a continued soak
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

func TestReport(t *testing.T) {
	path := os.Getenv("CNISCOPE_SOAK_DIARY")
	if path == "" {
		t.Skip("no diary: make soak-report")
	}
	entries, _, err := readDiary(path) // may be incomplete
	harness.Check(t, err)
	t.Log("\n" + report(entries))
}
