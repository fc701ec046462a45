//go:build linux

// Package protocol is shared by the soak, its agent and its plugin.
package protocol

import (
	"time"

	"golang.org/x/sys/unix"
)

// File names of the programs.
const (
	Agent  = "soak-agent"
	Plugin = "soak-cni"
)

const (
	// Late marks pods that the agent delays.
	Late = "-late"
	// LateBy is the delay, longer than slow.agent.
	LateBy = 1500 * time.Millisecond
	// Patience bounds the plugin's attempts to connect.
	Patience = 30 * time.Second
	// Done is the agent's answer.
	Done = "done\n"
)

// Request is the plugin's message.
type Request struct{ Command, Container, Args string }

// Entry is a line of the agent's journal: an answered request, in nanoseconds of Now.
type Entry struct {
	Request
	Start, End int64
}

// Now is the clock of all journals: monotonic nanoseconds, like kernel events.
func Now() int64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	return now.Nano()
}
