package node

import (
	"context"
)

// startedKey is the context key of the function that reports to the service manager of Windows.
type startedKey struct{}

// WithStarted returns a context with which Run calls up once it observes the node.
func WithStarted(ctx context.Context, up func()) context.Context {
	return context.WithValue(ctx, startedKey{}, up)
}

func tellStarted(ctx context.Context) {
	if up, ok := ctx.Value(startedKey{}).(func()); ok {
		up()
	}
}
