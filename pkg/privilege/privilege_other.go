//go:build !linux

// Package privilege gives up what a process needed only to start.
package privilege

// Drop does nothing: only Linux has capabilities.
func Drop(bool) (left string, err error) { return "", nil }

// Hide does nothing: only the image for Linux has a program that calls it.
func Hide() error { return nil }
