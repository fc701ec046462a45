//go:build !linux

package nri

import (
	"context"

	"github.com/cniscope/cniscope/pkg/event"
)

// NRI exists only on Linux.

func processEnded(ctx context.Context, _ int) bool {
	<-ctx.Done()
	return false
}

func (*Plugin) started(context.Context, *event.Sandbox, int64) {}

func (*Plugin) stopped(*event.Sandbox, int64) {}
