//go:build !linux

// Package privilege drops privileges that only the start needs.
package privilege

// Network returns false: only Linux has capabilities.
func Network() bool { return false }

// Drop does nothing: only Linux has capabilities.
func Drop(bool) (left string, err error) { return "", nil }

// DropButNetwork does nothing: only Linux has capabilities.
func DropButNetwork() error { return nil }

// Hide does nothing: only the Linux image uses it.
func Hide() error { return nil }
