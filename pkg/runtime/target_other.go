//go:build !windows

package runtime

import "net/url"

// target returns a socket as the URL that gRPC takes, whatever characters are in its path.
func target(socket string) string { return (&url.URL{Scheme: "unix", Path: socket}).String() }
