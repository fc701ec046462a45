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

// examined is what was found when the node was last examined. Whoever asks meanwhile waits for the same.
type examined struct {
	slot     slots // taken by who looks at the fields below
	document []byte
	at       time.Time
}

func (e *examined) get(ctx context.Context, examine func(context.Context) ([]byte, error)) ([]byte, error) {
	select {
	case e.slot <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer e.slot.free()
	if e.document != nil && time.Since(e.at) < examinedFor {
		return e.document, nil
	}
	ctx, cancel := context.WithTimeout(ctx, examinedWithin)
	defer cancel()
	document, err := examine(ctx)
	if err != nil {
		return nil, err
	}
	e.document, e.at = document, time.Now()
	return document, nil
}
