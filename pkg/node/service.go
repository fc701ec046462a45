package node

import (
	"context"
)

// startedKey is the key of the context's value that tells the service manager of Windows that cniscope
// is up: a func().
type startedKey struct{}

// WithStarted returns a context by which Run calls up once it observes the node.
func WithStarted(ctx context.Context, up func()) context.Context {
	return context.WithValue(ctx, startedKey{}, up)
}

// tellStarted tells the service manager of Windows that cniscope is up, if that started this process.
func tellStarted(ctx context.Context) {
	if up, ok := ctx.Value(startedKey{}).(func()); ok {
		up()
	}
}
