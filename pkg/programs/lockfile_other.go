//go:build !linux

package programs

import "github.com/cniscope/cniscope/pkg/event"

// LockFile is unavailable.
func LockFile(int, string) *event.LockFile { return nil }
