//go:build !linux

package firstconn

import "github.com/cniscope/cniscope/pkg/event"

// Tries returns nothing on this platform.
func Tries([]event.Namespace) map[event.Namespace]*event.Tries { return nil }
