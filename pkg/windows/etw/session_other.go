//go:build !windows || !(amd64 || arm64)

package etw

import "context"

// Session is unavailable on this platform.
type Session struct{}

// Open fails with a RefusedError.
func Open(Options) (*Session, error) {
	return nil, &RefusedError{Why: RefusedUnsupported, Doing: "this is not Windows"}
}

// Run returns at once.
func (*Session) Run(context.Context, Taker) error { return nil }

// Partial returns nil.
func (*Session) Partial() error { return nil }

// Stats returns nothing.
func (*Session) Stats() Stats { return Stats{} }

// Close does nothing.
func (*Session) Close() error { return nil }
