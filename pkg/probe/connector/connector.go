// Package connector observes CNI calls by the kernel's process connector (netlink) and /proc, if BPF programs are
// refused.
//
// Outside of the initial user, PID and network namespaces the kernel silently reports nothing, so Open waits for an
// event that it causes.
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
	Processes int
	Arguments arguments.Mode
	// may be nil
	Anchors  *anchor.Set `json:"-"`
	Rootless bool
	// reports whether a consumer waits for ticks; may be nil
	Busy func() bool `json:"-"`
	// called several times a second; quiet if no plugin runs; may be nil
	Tend func(now Stats, quiet bool) `json:"-"`
	Log  *slog.Logger                `json:"-"`
}

// Stats are the counters of a Connector.
type Stats struct {
	proctracker.Stats
	Messages uint64
}

// UnsupportedError names what the machine lacks, and the remedy.
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

// Readings returns s as metrics.
func (s Stats) Readings() []meter.Reading {
	return []meter.Reading{
		meter.Level("probe_processes", "Processes in the kernel's table.", s.Followed),
		meter.Count("probe_processes_refused_total", "Processes of plugin runs that the container runtime did not start, beyond their half of limits.processes.", s.Refused),
		meter.Count("connector_messages_total", "Process connector: messages read.", s.Messages),
		meter.Count("connector_programs_total", "Process connector: started programs of plugins and others, and whether cniscope read them before their exit.", s.Looked.Followed, "of", "plugins", "looked_at", "yes"),
		meter.Count("connector_programs_total", "Process connector: started programs of plugins and others, and whether cniscope read them before their exit.", s.Missed.Followed, "of", "plugins", "looked_at", "no"),
		meter.Count("connector_programs_total", "Process connector: started programs of plugins and others, and whether cniscope read them before their exit.", s.Looked.Strangers, "of", "others", "looked_at", "yes"),
		meter.Count("connector_programs_total", "Process connector: started programs of plugins and others, and whether cniscope read them before their exit.", s.Missed.Strangers, "of", "others", "looked_at", "no"),
	}
}
