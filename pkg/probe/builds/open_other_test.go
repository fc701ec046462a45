//go:build !linux

package builds

import "testing"

// forked is when this process was, which nobody asks here.
func forked(*testing.T) int64 { return 0 }
