//go:build !linux

package control

// Now does nothing: on this platform nothing is observed.
func (c *Call) Now() {}
