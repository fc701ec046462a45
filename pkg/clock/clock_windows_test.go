package clock

import (
	"testing"
	"time"
)

func TestMonotonicIsTheCounter(t *testing.T) {
	last, began, steps := Monotonic(), time.Now(), 0
	for time.Since(began) < 50*time.Millisecond {
		now := Monotonic()
		if now < last {
			t.Fatalf("%d after %d", now, last)
		}
		if now > last {
			steps++
		}
		last = now
	}
	if steps < 100 {
		t.Errorf("%d different times in 50 ms: it ticks with the system's timer", steps)
	}
}

func TestACounterAsNanoseconds(t *testing.T) {
	second := int64(frequency)
	for ticks, want := range map[int64]int64{0: 0, second: 1e9, 1000 * 86400 * second: 1000 * 86400 * 1e9, -1: 0} {
		if got := FromCounter(ticks); got != want {
			t.Errorf("%d ticks are %d ns, want %d", ticks, got, want)
		}
	}
}

func TestAnAnchorIsNow(t *testing.T) {
	before := time.Now().Add(-steered)
	_, wall := Anchor()
	if after, at := time.Now().Add(steered), time.Unix(0, wall); at.Before(before) || at.After(after) {
		t.Errorf("the anchor is %v, want a time between %v and %v", at, before, after)
	}
}
