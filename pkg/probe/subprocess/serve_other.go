//go:build !linux

package subprocess

import "errors"

// Serve fails: only Linux has the process connector.
func Serve() error { return errors.New("only Linux has the process connector") }
