//go:build linux && !amd64

package kernel

// legacyCalls: none.
func legacyCalls() map[InsideClass]syscalls { return nil }

// legacyTimeouts: none.
func legacyTimeouts() map[int]uint8 { return nil }
