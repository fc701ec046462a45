//go:build linux

package soak

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// report returns the figures of docs/reliability.md.
func report(entries []entry) string {
	var out strings.Builder
	pods, failed, violations, faults := 0, 0, 0, 0
	sum := account{Excused: map[string]int{}, Lost: map[string]float64{}}
	unaccounted, untrue := 0, 0
	kinds := map[string]bool{}
	var recovery []float64
	for _, e := range entries {
		pods += len(e.Pods)
		for _, p := range e.Pods {
			if p.Err != "" {
				failed++
			}
		}
		violations += len(e.Violations)
		sum.Runs, sum.Traced, sum.Checked = sum.Runs+e.Account.Runs, sum.Traced+e.Account.Traced, sum.Checked+e.Account.Checked
		unaccounted, untrue = unaccounted+len(e.Account.Unaccounted), untrue+len(e.Account.False)
		sum.CountedAsLost += e.Account.CountedAsLost
		for why, n := range e.Account.Excused {
			sum.Excused[why] += n
		}
		for why, n := range e.Account.Lost {
			sum.Lost[why] += n
		}
		for _, f := range e.Faults {
			if !f.Unsupported {
				faults++
				kinds[f.Kind] = true
				recovery = append(recovery, e.Recovery)
			}
		}
	}
	fmt.Fprintf(&out, "%d rounds, %d pods, %d faults of %d kinds\n", len(entries), pods, faults, len(kinds))
	fmt.Fprintf(&out, "pods that failed: %d; violations of any kind: %d\n", failed, violations)
	fmt.Fprintf(&out, "runs of plugins: %d; in a trace: %d; excused: %v; counted as lost: %d (%v); not accounted for: %d\n",
		sum.Runs, sum.Traced, sum.Excused, sum.CountedAsLost, sum.Lost, unaccounted)
	fmt.Fprintf(&out, "spans of calls held against the truth: %d; false: %d\n", sum.Checked, untrue)
	if slices.Sort(recovery); len(recovery) > 0 {
		fmt.Fprintf(&out, "all was as before after %.1f s, at most %.1f s\n", recovery[len(recovery)/2], recovery[len(recovery)-1])
	}
	for _, g := range growths() {
		if slope, half, n := growth(entries, g.of); n >= enough {
			fmt.Fprintf(&out, "growth per 1,000 pods of %s: %+.2f, 95 %% interval %+.2f to %+.2f\n", g.name, slope, slope-half, slope+half)
		}
	}
	return out.String()
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
