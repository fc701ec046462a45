// Package attr names what cniscope's spans carry: a constant for each kind of span, and for
// each attribute its key and a constructor of the right type. All of it is generated from
// registry/cniscope.yaml, as are the tables of docs/spans.md.
package attr

import "time"

//go:generate go run ./registry/generate attr.go ../../docs/spans.md

// milliseconds is a duration as spans have it, to the nanosecond.
func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// TimePrefix is what the keys of the parts of a call's time begin with; they partition it.
const TimePrefix = "cniscope.time."
