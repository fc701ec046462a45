//go:build !linux

package node

import (
	"context"
	"log/slog"
)

// releaseUnused does nothing: elsewhere what is not used leaves a process's working set by itself.
func releaseUnused(context.Context, *slog.Logger, <-chan struct{}) {}

// mapSparsely does nothing: it is for what Linux maps around the pages that are used.
func mapSparsely(*slog.Logger) {}
