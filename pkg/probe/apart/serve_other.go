//go:build !linux

package apart

import "errors"

// Serve fails: only Linux has the process connector.
func Serve() error { return errors.New("only Linux has the process connector") }
