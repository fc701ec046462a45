//go:build !linux

package node

import (
	"context"
	"log/slog"
)

// SetSlack does nothing: only Linux has timer slack.
func SetSlack([]string) {}

// releaseUnused is empty: the system trims the working set.
func releaseUnused(context.Context, *slog.Logger, <-chan struct{}) {}

func mapSparsely(*slog.Logger) {}
