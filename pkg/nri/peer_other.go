//go:build !linux

package nri

import "context"

// There is no NRI outside of Linux.

func processEnded(ctx context.Context, _ int) bool {
	<-ctx.Done()
	return false
}
