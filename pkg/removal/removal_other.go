//go:build !linux

package removal

import "github.com/cniscope/cniscope/pkg/event"

func once([]*event.Sandbox, int) []Step { return nil }
