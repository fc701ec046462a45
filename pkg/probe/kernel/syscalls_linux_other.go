//go:build linux && !amd64

package kernel

func legacyCalls() map[InsideClass]syscalls { return nil }

func legacyTimeouts() map[int]uint8 { return nil }

func legacyPaths() map[int]uint8 { return nil }
