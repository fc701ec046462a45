//go:build !windows

package runtime

import "net/url"

// target escapes a path for gRPC.
func target(socket string) string { return (&url.URL{Scheme: "unix", Path: socket}).String() }
