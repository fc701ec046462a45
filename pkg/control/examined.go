package control

import (
	"context"
	"time"
)

const (
	// examinedFor is how long a finding is good enough: what is wrong with a node seldom changes faster.
	examinedFor = 30 * time.Second
	// examinedWithin is how long one examination may take.
	examinedWithin = 20 * time.Second
)

// Examined bounds how often a node is examined, for ReadHandlers.Doctor: once at a time, and whoever asks
// meanwhile, or in the 30 s after it, is told the same. An examination goes on when who asked for it is gone: half
// of one would be told to the others, and whoever asks and goes could have one begin after the other.
func Examined(examine func(ctx context.Context) ([]byte, error)) func(ctx context.Context) ([]byte, error) {
	var last examination
	turn := make(chan struct{}, 1) // whose it is looks at last
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

// examination is what was found, and when.
type examination struct {
	document []byte
	err      error
	at       time.Time
}
