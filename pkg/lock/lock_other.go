//go:build !linux

package lock

// Take does nothing: on this platform nothing is observed.
func Take(string) (release func(), err error) { return func() {}, nil }

// File does nothing.
func File(string) (release func(), err error) { return func() {}, nil }
