//go:build !linux

package export

// openFlags is 0: Go has no portable flag against links.
const openFlags = 0

func isLink(error) bool { return false }
