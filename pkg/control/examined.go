package control

import (
	"context"
	"time"
)

const (
	// examinedFor is how long a document serves, examinedWithin bounds an examination.
	examinedFor    = 30 * time.Second
	examinedWithin = 20 * time.Second
)

// Examined runs one examination at a time, for all requests of 30 s, even if its client leaves.
func Examined(examine func(ctx context.Context) ([]byte, error)) func(ctx context.Context) ([]byte, error) {
	var last examination
	turn := make(chan struct{}, 1) // guards last
	return func(ctx context.Context) ([]byte, error) {
		select {
		case turn <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if !last.at.IsZero() && time.Since(last.at) < examinedFor {
			defer func() { <-turn }()
			return last.document, last.err
		}
		done := make(chan examination, 1)
		go func() {
			defer func() { <-turn }()
			whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), examinedWithin)
			defer cancel()
			last.document, last.err = examine(whole)
			last.at = time.Now()
			done <- last
		}()
		select {
		case found := <-done:
			return found.document, found.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

type examination struct {
	document []byte
	err      error
	at       time.Time
}
