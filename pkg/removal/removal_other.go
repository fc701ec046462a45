//go:build !linux

package removal

import (
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/procfs"
)

func once([]*event.Sandbox, int, *procfs.Memory) []Step { return nil }
