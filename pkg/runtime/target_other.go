//go:build !windows

package runtime

import "net/url"

func target(socket string) string { return (&url.URL{Scheme: "unix", Path: socket}).String() }
