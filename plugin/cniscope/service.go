package main

import (
	"context"
)

// startedKey is the key of the context's value that tells the service manager of Windows that cniscope
// is up: a func().
type startedKey struct{}

// tellStarted tells the service manager of Windows, where that has started this process, that cniscope is up.
// systemd is told by tellSystemd.
func tellStarted(ctx context.Context) {
	if up, ok := ctx.Value(startedKey{}).(func()); ok {
		up()
	}
}
