package node

import (
	"context"
)

type startedKey struct{}

// WithStarted returns a context with which Run calls up once it observes.
func WithStarted(ctx context.Context, up func()) context.Context {
	return context.WithValue(ctx, startedKey{}, up)
}

func tellStarted(ctx context.Context) {
	if up, ok := ctx.Value(startedKey{}).(func()); ok {
		up()
	}
}
