//go:build !linux

package firstconn

import (
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// Tries returns nothing on this platform.
func Tries(*procfs.Residents, []event.Namespace) map[event.Namespace]*event.Tries { return nil }
