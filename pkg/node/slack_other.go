//go:build !linux

package node

// SetSlack does nothing: only Linux has timer slack.
func SetSlack([]string) {}
