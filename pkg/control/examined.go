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
// meanwhile, or in the 30 s after it, is told the same.
func Examined(examine func(ctx context.Context) ([]byte, error)) func(ctx context.Context) ([]byte, error) {
	var (
		document []byte
		at       time.Time
	)
	turn := make(chan struct{}, 1) // whose it is looks at document and at
	return func(ctx context.Context) ([]byte, error) {
		select {
		case turn <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		defer func() { <-turn }()
		if document != nil && time.Since(at) < examinedFor {
			return document, nil
		}
		ctx, cancel := context.WithTimeout(ctx, examinedWithin)
		defer cancel()
		found, err := examine(ctx)
		if err != nil {
			return nil, err
		}
		document, at = found, time.Now()
		return document, nil
	}
}
