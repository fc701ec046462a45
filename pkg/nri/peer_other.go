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

func (*Plugin) late(*event.Sandbox, int64) {}

func (*Plugin) watch(context.Context, *event.Sandbox) {}

func (*Plugin) stopped(*event.Sandbox, int64) {}
