package clock

import (
	"testing"
	"time"
)

func TestMonotonicIsTheKernelsClock(t *testing.T) {
	last := Monotonic()
	for range 100_000 {
		now, kernel := Monotonic(), kernel()
		if now < last || now > kernel {
			t.Fatalf("%d after %d, ahead of the kernel's %d", now, last, kernel)
		}
		if kernel-now > int64(10*time.Second) {
			t.Fatalf("%d is far behind the kernel's %d", now, kernel)
		}
		last = now
	}
}
