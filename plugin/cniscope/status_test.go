//go:build linux

package main

import (
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

// A cniscope that was started by hand runs with options of its own.
func TestStatusFindsTheRunningCniscopeByItsOptions(t *testing.T) {
	options := remembering(t, threePods)
	out, _, err := cniscope(t, "status", "--config", options)
	harness.Check(t, err)
	harness.Says(t, out, "no, but cniscope is running")
}
