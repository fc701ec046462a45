//go:build !windows

package node

func isService() bool { return false }
