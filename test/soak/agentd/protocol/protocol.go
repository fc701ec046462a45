//go:build linux

// Package protocol is what the soak's agent, its plugin and the soak agree on.
package protocol

import (
	"time"

	"golang.org/x/sys/unix"
)

// The names of the programs' files.
const (
	Agent  = "soak-agent"
	Plugin = "soak-cni"
)

const (
	// Late is in the names of pods for which the agent takes its time.
	Late = "-late"
	// LateBy is how long that is: longer than slow.agent.
	LateBy = 1500 * time.Millisecond
	// Patience is how long the plugin tries to reach its agent.
	Patience = 30 * time.Second
	// Done is the agent's answer.
	Done = "done\n"
)

// Request is what the plugin tells its agent.
type Request struct{ Command, Container, Args string }

// Entry is a line of the agent's journal: a request that it answered, in nanoseconds of Now.
type Entry struct {
	Request
	Start, End int64
}

// Now is the clock of all journals: monotonic nanoseconds, as the kernel's events have them.
func Now() int64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	return now.Nano()
}
