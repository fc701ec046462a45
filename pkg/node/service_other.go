//go:build !windows

package node

// isService is false: only Windows has services that report their state themselves.
func isService() bool { return false }
