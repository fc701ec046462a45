//go:build linux

package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

func TestEnvironmentsHaveTheLengthThatIsSaid(t *testing.T) {
	for _, test := range []struct{ n, bytes int }{{35, 2560}, {200, 20_000}} {
		env, bytes := environment(test.n, test.bytes), 0
		for _, kv := range env {
			bytes += len(kv) + 1
		}
		if len(env) != test.n || bytes != test.bytes {
			t.Errorf("%d variables of %d bytes, want %d of %d", len(env), bytes, test.n, test.bytes)
		}
	}
}

func TestQuantiles(t *testing.T) {
	values := []float64{5, 1, 4, 2, 3}
	for q, want := range map[float64]float64{0: 1, 0.5: 3, 0.99: 5, 1: 5} {
		harness.Equal(t, quantile(values, q), want, "quantile", q)
	}
	if !slices.Equal(values, []float64{5, 1, 4, 2, 3}) || median[float64](nil) != 0 {
		t.Errorf("changed to %v", values)
	}
}

func TestAnIntervalHoldsTheEstimate(t *testing.T) {
	rounds := []float64{10, 11, 9, 10, 12, 8, 10, 11}
	low, high := interval(len(rounds), func(drawn []int) float64 {
		var some []float64
		for _, i := range drawn {
			some = append(some, rounds[i])
		}
		return mean(some)
	})
	if m := mean(rounds); low >= m || high <= m || low < 8 || high > 12 {
		t.Errorf("%v to %v around %v", low, high, m)
	}
}

func TestTold(t *testing.T) {
	tr := &tracer{out: filepath.Join(t.TempDir(), "out")}
	text := "exec bridge\nexec runc pod-12\nexec kubepods\nexec x pod-3"
	harness.Check(t, os.WriteFile(tr.out, []byte(text), 0o600))
	lines, naming, err := tr.Told(podName)
	if lines != 3 || naming != 1 || err != nil {
		t.Errorf("%d lines, %d of them with a name, %v; want 3, 1", lines, naming, err)
	}
}
