//go:build linux && !amd64

package kernel

// legacyCalls: none.
func legacyCalls() []syscall { return nil }
