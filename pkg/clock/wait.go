package clock

import (
	"context"
	"time"
)

// Wait waits for d, and returns false if ctx ends before.
func Wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
