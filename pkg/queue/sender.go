package queue

import (
	"context"
	"fmt"
	"time"
)

// Sender sends to one destination. One goroutine at a time uses it.
type Sender interface {
	// Send sends the items in one request. The error is a *RejectedError where trying again
	// is of no use, a *PartialError where the rest has arrived, a *ThrottledError
	// where the destination says when to come back; with any other nothing has
	// arrived, or it is not known, and the same may be tried again.
	Send(ctx context.Context, items [][]byte) error
	// Shutdown lets go of what the sender holds. It is called once, at the end.
	Shutdown(ctx context.Context) error
}

// RejectedError says that the destination does not take these spans, now or later.
type RejectedError struct{ Err error }

func (e *RejectedError) Error() string { return "rejected: " + e.Err.Error() }

// Unwrap returns what the destination said.
func (e *RejectedError) Unwrap() error { return e.Err }

// PartialError says that the spans have arrived, but for some. With no span
// refused it is a warning.
type PartialError struct {
	// Spans is how many were refused.
	Spans uint64
	// Message is the destination's; foreign text.
	Message string
}

func (e *PartialError) Error() string {
	return fmt.Sprintf("%d spans refused: %s", e.Spans, e.Message)
}

// ThrottledError says that the destination asked for time.
type ThrottledError struct {
	Err   error
	After time.Duration
}

func (e *ThrottledError) Error() string { return e.Err.Error() }

// Unwrap returns what the destination said.
func (e *ThrottledError) Unwrap() error { return e.Err }
