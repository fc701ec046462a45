// Package fanout sends a question to many nodes within bounds on concurrency and time.
package fanout

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"
)

// Limits bound the queries.
type Limits struct {
	AtOnce   int
	Patience time.Duration
}

// ErrNoAnswer means that a node timed out.
var ErrNoAnswer = errors.New("no answer")

// Answer is one node's answer or error.
type Answer[T any] struct {
	Value T
	Err   error
}

// Ask yields answers as they arrive, until all are there, ctx ends, or the caller stops. After Patience a node has
// ErrNoAnswer. ask must return with its context; none runs after Ask.
func Ask[N, T any](ctx context.Context, nodes []N, l Limits,
	ask func(context.Context, N) (T, error),
) iter.Seq2[N, Answer[T]] {
	type result struct {
		node   N
		answer Answer[T]
	}
	return func(yield func(N, Answer[T]) bool) {
		ctx, stop := context.WithCancel(ctx)
		slots, results := make(chan struct{}, max(l.AtOnce, 1)), make(chan result)
		var asking sync.WaitGroup
		asking.Go(func() {
			for _, node := range nodes {
				select {
				case slots <- struct{}{}:
				case <-ctx.Done():
					return
				}
				asking.Go(func() {
					defer func() { <-slots }()
					value, err := one(ctx, node, l.Patience, ask)
					select {
					case results <- result{node, Answer[T]{value, err}}:
					case <-ctx.Done():
					}
				})
			}
		})
		defer asking.Wait()
		defer stop()
		for range nodes {
			select {
			case r := <-results:
				if !yield(r.node, r.answer) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

func one[N, T any](ctx context.Context, node N, patience time.Duration,
	ask func(context.Context, N) (T, error),
) (T, error) {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	value, err := ask(limited, node)
	if err != nil && errors.Is(limited.Err(), context.DeadlineExceeded) && ctx.Err() == nil {
		err = fmt.Errorf("%w within %s", ErrNoAnswer, patience)
	}
	return value, err
}
