//go:build !linux

package main

import (
	"context"
	"log/slog"
)

// releaseUnused does nothing: elsewhere what is not used leaves a process's working set by itself.
func releaseUnused(context.Context, *slog.Logger, <-chan struct{}) {}
