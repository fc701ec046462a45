// Package fanout asks many nodes one question: so many at a time, each for so long, and with what came so far
// in hand while the rest is awaited.
package fanout

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"
)

// Limits bound what asking costs.
type Limits struct {
	// AtOnce is how many nodes are asked at the same time; at least 1.
	AtOnce int
	// Patience is how long one node may take to answer.
	Patience time.Duration
}

// ErrNoAnswer is the error of a node that did not answer in time.
var ErrNoAnswer = errors.New("no answer")

// Answer is what became of one node's question.
type Answer[T any] struct {
	Value T
	Err   error
}

// Ask asks every node and yields the answers as they come, one at a time, until all are there, ctx ends, or
// the caller wants no more. It holds AtOnce answers at the most. A node that takes longer than Patience has
// ErrNoAnswer; ask has to return when its context ends. When Ask returns, no call of ask is under way.
func Ask[N, T any](ctx context.Context, nodes []N, l Limits, ask func(context.Context, N) (T, error)) iter.Seq2[N, Answer[T]] {
	type result struct {
		node   N
		answer Answer[T]
	}
	return func(yield func(N, Answer[T]) bool) {
		ctx, stop := context.WithCancel(ctx)
		questions, results := make(chan N), make(chan result)
		var workers sync.WaitGroup
		for range min(max(l.AtOnce, 1), len(nodes)) {
			workers.Go(func() {
				for node := range questions {
					value, err := one(ctx, node, l.Patience, ask)
					select {
					case results <- result{node, Answer[T]{value, err}}:
					case <-ctx.Done():
					}
				}
			})
		}
		go func() {
			defer close(questions)
			for _, node := range nodes {
				select {
				case questions <- node:
				case <-ctx.Done():
					return
				}
			}
		}()
		defer workers.Wait()
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

// one asks one node, and says so if it took too long.
func one[N, T any](ctx context.Context, node N, patience time.Duration, ask func(context.Context, N) (T, error)) (T, error) {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	value, err := ask(limited, node)
	if err != nil && errors.Is(limited.Err(), context.DeadlineExceeded) && ctx.Err() == nil {
		err = fmt.Errorf("%w within %s", ErrNoAnswer, patience)
	}
	return value, err
}
