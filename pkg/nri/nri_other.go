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

// Search finds no plugins here.
type Search struct{}

// NewSearch ignores the socket.
func NewSearch(string) Search { return Search{} }

// List returns nothing.
func (Search) List(int) ([]Other, bool) { return nil, false }

func startOf(int) int64 { return 0 }
