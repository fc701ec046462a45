//go:build !linux

package nri

import "context"

// NRI exists only on Linux.

func processEnded(ctx context.Context, _ int) bool {
	<-ctx.Done()
	return false
}
