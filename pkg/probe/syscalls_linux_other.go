//go:build linux && !amd64

package probe

// legacyCalls: none.
func legacyCalls() []call { return nil }
