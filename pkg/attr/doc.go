// Package attr has a constant for each kind of span, and a key and constructor for each attribute, generated from
// registry/cniscope.yaml, as are the tables of docs/spans.md.
package attr

import "time"

//go:generate go run ./registry/generate attr.go ../../docs/spans.md

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// TimePrefix begins the keys of the parts of a call's time.
const TimePrefix = "cniscope.time."
