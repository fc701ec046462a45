//go:build !windows

package main

import (
	"context"
)

// asService does nothing: only Windows has services that are told by their own program how they are.
func asService(func(context.Context) int) (code int, is bool) { return 0, false }
