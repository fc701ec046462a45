//go:build !linux

package export

// openFlags are none: Go has no portable way to refuse a link.
const openFlags = 0

func isLink(error) bool { return false }
