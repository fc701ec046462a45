//go:build !windows

package main

import (
	"context"
)

// asService does nothing: only Windows has services that report their state themselves.
func asService(func(context.Context) int) (code int, is bool) { return 0, false }
