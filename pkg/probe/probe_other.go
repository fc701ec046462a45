//go:build !linux

package probe

import (
	"context"

	"github.com/cniscope/cniscope/pkg/event"
)

// Probe is unsupported on this platform.
type Probe struct{}

// Open fails with an UnsupportedError.
func Open(Options) (*Probe, error) {
	return nil, &UnsupportedError{Need: "Linux", Remedy: "on this platform only recordings can be shown"}
}

// Run returns at once.
func (*Probe) Run(context.Context, event.Sink) error { return nil }

// Stats returns zeros.
func (*Probe) Stats() Stats { return Stats{} }

// Close does nothing.
func (*Probe) Close() error { return nil }
