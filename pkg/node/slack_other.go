//go:build !linux

package node

// SetSlack does nothing: only Linux has a slack for each thread.
func SetSlack([]string) {}
