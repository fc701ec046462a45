//go:build !windows

package runtime

import "net/url"

// target returns a socket's path as gRPC's URL, with any characters escaped.
func target(socket string) string { return (&url.URL{Scheme: "unix", Path: socket}).String() }
