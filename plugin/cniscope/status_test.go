//go:build linux

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/install"
	"github.com/cniscope/cniscope/test/harness"
)

// A cniscope that was started by hand runs with options of its own.
func TestStatusFindsTheRunningCniscopeByItsOptions(t *testing.T) {
	options := remembering(t, threePods)
	out, _, err := cniscope(t, "status", "--config", options)
	harness.Check(t, err)
	harness.Says(t, out, "no, but cniscope is running")
}

func TestStatusIsInUTC(t *testing.T) {
	var out strings.Builder
	harness.Check(t, tell(&out, &install.Status{Containerd: install.Containerd{Version: "2.1.4", PID: 7, Since: time.Unix(0, 0)}}))
	harness.Says(t, out.String(), "process 7, since 1970-01-01 00:00:00Z")
}
