//go:build !linux

// Package privilege gives up what a process needed only to start.
package privilege

// Drop does nothing: only Linux has capabilities.
func Drop(bool) (left string, err error) { return "", nil }
