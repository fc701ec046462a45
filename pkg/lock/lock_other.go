//go:build !linux && !windows

package lock

import "os"

// Take does nothing: this platform observes nothing.
func Take(string, string) (release func(), err error) { return func() {}, nil }

// In does nothing.
func In(*os.Root, string, string) (release func(), err error) { return func() {}, nil }

// File does nothing.
func File(*os.File) error { return nil }
