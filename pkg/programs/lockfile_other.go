//go:build !linux

package programs

import "github.com/cniscope/cniscope/pkg/event"

// LockFile returns nil on this platform.
func LockFile(int, string) *event.LockFile { return nil }
