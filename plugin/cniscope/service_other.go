//go:build !windows

package main

import (
	"context"
)

// asService does nothing: only Windows' services report their state.
func asService(func(context.Context) int) (code int, is bool) { return 0, false }
