// Package winproc observes CNI calls on Windows. A Teller reports starts and ends: event tracing or, if refused,
// snapshots of the process table.
package winproc

import (
	"log/slog"
	"time"

	"github.com/cniscope/cniscope/pkg/anchor"
	"github.com/cniscope/cniscope/pkg/meter"
	"github.com/cniscope/cniscope/pkg/probe/arguments"
	"github.com/cniscope/cniscope/pkg/probe/proctracker"
)

// Filetime is Windows' time: 100 ns since 1601, UTC.
type Filetime int64

// since1601 is 1970 as a Filetime.
const since1601 = 116444736000000000

func (f Filetime) unix() int64 { return (int64(f) - since1601) * 100 }

// Entry is one process.
type Entry struct {
	// Parent's PID may be reused.
	PID, Parent uint32
	// Created identifies a process together with PID.
	Created Filetime
	// Name is a file name, such as "powershell.exe".
	Name string
}

// System is the operating system.
type System interface {
	// Processes is valid until the next call.
	Processes() ([]Entry, error)
	// Open also works after an exit. The error is Gone if the process does not exist.
	Open(pid uint32) (Process, error)
	// Clocks returns one instant in ns, monotonic and since 1970.
	Clocks() (mono, wall int64)
}

// Process is an open process.
type Process interface {
	Created() (Filetime, error)
	Parent() (uint32, error)
	File() (string, error)
	Ended() (End, bool)
	// Privileged reports whether its user is system or administrator of the node.
	Privileged() bool
	Memory
	Close()
}

// End is the exit of a process.
type End struct {
	At   Filetime
	Code uint32
	// CPU time in ns.
	CPU int64
}

// Options of a Source.
type Options struct {
	Processes int
	Arguments arguments.Mode
	// Globs of agents' programs, without ".exe".
	Agents []string
	// Anchors are the runtime's processes, or nil.
	Anchors *anchor.Set
	// Busy reports whether ticks are needed; it may be nil.
	Busy   func() bool
	System System
	Log    *slog.Logger
}

// Stats counts a Source's work.
type Stats struct {
	proctracker.Stats
	// Number of snapshots, their CPU time and current interval; 0 with another Teller.
	Snapshots uint64
	Spent     time.Duration
	Interval  time.Duration
	// Read counts processes, Unread the others by reason.
	Read   uint64
	Unread map[string]uint64
}

const unread = "Processes that the container runtime or a plugin started, and whose environment and command line " +
	"could not be read, by reason."

// Readings returns the metrics.
func (s Stats) Readings() []meter.Reading {
	all := []meter.Reading{
		meter.Level("probe_processes", "Processes in the kernel's table.", s.Followed),
		meter.Count("probe_processes_refused_total", "Processes of plugin runs that the container runtime did not start, "+
			"beyond their half of limits.processes.", s.Refused),
		meter.Count("probe_environments_read_total", "Processes that the container runtime or a plugin started, and whose "+
			"environment and command line were read.", s.Read),
	}
	for reason, n := range s.Unread {
		all = append(all, meter.Count("probe_environments_unread_total", unread, n, "reason", reason))
	}
	if s.Snapshots > 0 {
		all = append(all,
			meter.Count("probe_snapshots_total", "Snapshots of the process table.", s.Snapshots),
			meter.Count("probe_snapshot_seconds_total", "Time that they took.", s.Spent.Seconds()),
			meter.Level("probe_snapshot_interval_seconds", "How far they are apart: a process that lived shorter than that "+
				"may not have been seen.", s.Interval.Seconds()))
	}
	return all
}
