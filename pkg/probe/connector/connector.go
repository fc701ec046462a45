// Package connector observes CNI calls by the kernel's process connector (netlink) and /proc, where BPF
// programs are refused. The kernel tells of each fork, exec and exit; what a process runs is read from /proc
// while it lives (pkg/probe/proctracker). So commands, plugins and delegates are seen, their times and how they
// ended; nothing of what they ask of the kernel or wait for.
//
// It works in the initial user, PID and network namespaces only, and elsewhere the kernel says nothing at
// all. So Open does something that the kernel must report, and waits for that message.
package connector

import (
	"fmt"
	"log/slog"

	"github.com/cniscope/cniscope/pkg/anchor"
	"github.com/cniscope/cniscope/pkg/meter"
	"github.com/cniscope/cniscope/pkg/probe/arguments"
	"github.com/cniscope/cniscope/pkg/probe/proctracker"
)

// Options of a Connector.
type Options struct {
	// Processes is how many processes of plugin trees are followed at once.
	Processes int
	// Arguments says which arguments of commands are kept.
	Arguments arguments.Mode
	// Anchors are the processes of the container runtime; nil: none is known, ever.
	Anchors *anchor.Set `json:"-"`
	// Rootless: what a runtime in a user namespace runs is believed, too.
	Rootless bool
	// Busy reports whether somebody still waits for ticks. May be nil.
	Busy func() bool `json:"-"`
	// Tend is called some times a second with what was counted; quiet: no plugin runs. May be nil.
	Tend func(now Stats, quiet bool) `json:"-"`
	// Log gets what an operator should know.
	Log *slog.Logger `json:"-"`
}

// Stats is what a Connector has counted.
type Stats struct {
	proctracker.Stats
	// Messages of the kernel were read.
	Messages uint64
}

// UnsupportedError says that this machine cannot do what the connector needs, and what would help.
type UnsupportedError struct {
	Need, Remedy string
	Err          error // may be nil
}

func (e *UnsupportedError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("process connector: %s; %s", e.Need, e.Remedy)
	}
	return fmt.Sprintf("process connector: %s: %v; %s", e.Need, e.Err, e.Remedy)
}

func (e *UnsupportedError) Unwrap() error { return e.Err }

// Readings are the metrics that s is.
func (s Stats) Readings() []meter.Reading {
	return []meter.Reading{
		meter.Level("probe_processes", "Processes in the kernel's table.", s.Followed),
		meter.Count("probe_processes_refused_total", "Processes that the container runtime did not start, beyond their half of limits.processes: they are not followed.", s.Refused),
		meter.Count("connector_messages_total", "Messages of the process connector that were read.", s.Messages),
		meter.Count("connector_programs_total", "Programs that began to run, in plugins' trees and else, and whether they were still there to be looked at.", s.Looked.Followed, "of", "plugins", "looked_at", "yes"),
		meter.Count("connector_programs_total", "Programs that began to run, in plugins' trees and else, and whether they were still there to be looked at.", s.Missed.Followed, "of", "plugins", "looked_at", "no"),
		meter.Count("connector_programs_total", "Programs that began to run, in plugins' trees and else, and whether they were still there to be looked at.", s.Looked.Strangers, "of", "others", "looked_at", "yes"),
		meter.Count("connector_programs_total", "Programs that began to run, in plugins' trees and else, and whether they were still there to be looked at.", s.Missed.Strangers, "of", "others", "looked_at", "no"),
	}
}
