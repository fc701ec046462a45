package etw

import (
	"context"
	"errors"
)

// Session is two real-time sessions of Windows, which go on collecting until Close.
type Session struct{}

// Open starts the sessions; those that a crashed predecessor left behind under the same names are stopped. Events
// collect from then on. The error is a RefusedError where Windows does not allow it. Needs administrator or SYSTEM.
func Open(Options) (*Session, error) {
	return nil, &RefusedError{Why: RefusedUnsupported, Doing: "StartTrace", Err: errors.ErrUnsupported}
}

// Run delivers changes to t until ctx ends, those of what was there already first.
func (*Session) Run(context.Context, Taker) error { return nil }

// Partial says which of the two sessions was refused, as a RefusedError; nil if both run. Without the system logger
// changes have no command line; without Kernel-Process neither Created nor Cycles.
func (*Session) Partial() error { return nil }

// Stats returns what was counted so far. It may be called at any time.
func (*Session) Stats() Stats { return Stats{} }

// Close stops the sessions: Windows would keep them when we are gone.
func (*Session) Close() error { return nil }
