//go:build !linux

package firstconn

import "github.com/cniscope/cniscope/pkg/event"

// Tries returns nothing on this platform.
func Tries([]string) map[string]*event.Tries { return nil }
