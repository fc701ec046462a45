// Package winproc observes CNI calls where a process cannot be asked what it was told once it has ended: on Windows.
// Who began and who ended, a Teller says: event tracing, or where that is refused snapshots of the process
// table. What a process was told is read from its memory while it lives (Memory), which is done as soon as
// somebody tells of it, for processes that the container runtime started and what descends from these.
//
// Only System talks to the operating system. Everything else is portable, and tested with systems that are made up.
package winproc

import (
	"log/slog"
	"time"

	"github.com/cniscope/cniscope/pkg/anchor"
	"github.com/cniscope/cniscope/pkg/meter"
	"github.com/cniscope/cniscope/pkg/probe/arguments"
	"github.com/cniscope/cniscope/pkg/probe/proctracker"
)

// Filetime is a time as Windows has it: 100 ns since 1601, UTC.
type Filetime int64

// since1601 is 1970 as a Filetime.
const since1601 = 116444736000000000

// unix returns ns since 1970.
func (f Filetime) unix() int64 { return (int64(f) - since1601) * 100 }

// Entry is one process of the process table.
type Entry struct {
	// PID is its number, Parent that of the process that created it, which may be another's by now.
	PID, Parent uint32
	// Created is when it was created: PID and Created together are one process, for ever.
	Created Filetime
	// Name is the file name of its program, as "powershell.exe".
	Name string
}

// System is what a Source asks of the operating system.
type System interface {
	// Processes lists the processes that there are. What it returns is gone with the next call.
	Processes() ([]Entry, error)
	// Open opens a process, which then can be asked also after its end. The error is Gone for one that is not there.
	Open(pid uint32) (Process, error)
	// Clocks returns one instant: in ns of the monotonic clock, and since 1970.
	Clocks() (mono, wall int64)
}

// Process is one that was opened.
type Process interface {
	// Created is when it was created, Parent who did so.
	Created() (Filetime, error)
	Parent() (uint32, error)
	// File is the path of its program, as Windows knows it.
	File() (string, error)
	// Ended reports whether it is over, and how.
	Ended() (End, bool)
	// Privileged reports whether it runs as the system, or as an administrator of the node.
	Privileged() bool
	Memory
	Close()
}

// End is how a process ended.
type End struct {
	At   Filetime
	Code uint32
	// CPU is the time that it ran, in ns.
	CPU int64
}

// Options of a Source.
type Options struct {
	// Processes is how many processes of plugin trees are followed at once.
	Processes int
	// Arguments says which arguments of commands are kept.
	Arguments arguments.Mode
	// Agents are globs on the names of programs, without ".exe", that serve plugins.
	Agents []string
	// Anchors are the processes of the container runtime; nil: none is known, ever.
	Anchors *anchor.Set
	// Busy reports whether somebody still waits for ticks. May be nil.
	Busy func() bool
	// System is asked.
	System System
	// Log gets what an operator should know.
	Log *slog.Logger
}

// Stats is what a Source has counted.
type Stats struct {
	proctracker.Stats
	// Snapshots were taken, in Spent of time; Interval is how far they are apart now. All 0 with another Teller.
	Snapshots uint64
	Spent     time.Duration
	Interval  time.Duration
	// Read counts processes whose memory was read, Unread those of which it could not be, by reason.
	Read   uint64
	Unread map[string]uint64
}

const unread = "Processes that the container runtime or a plugin started, and whose environment and command line could not be read, by reason."

// Readings are the metrics that s is.
func (s Stats) Readings() []meter.Reading {
	all := []meter.Reading{
		meter.Level("probe_processes", "Processes in the kernel's table.", s.Followed),
		meter.Count("probe_processes_refused_total", "Processes that the container runtime did not start, beyond their half of limits.processes: they are not followed.", s.Refused),
		meter.Count("probe_environments_read_total", "Processes that the container runtime or a plugin started, and whose environment and command line were read.", s.Read),
	}
	for reason, n := range s.Unread {
		all = append(all, meter.Count("probe_environments_unread_total", unread, n, "reason", reason))
	}
	if s.Snapshots > 0 {
		all = append(all,
			meter.Count("probe_snapshots_total", "Snapshots of the process table.", s.Snapshots),
			meter.Count("probe_snapshot_seconds_total", "Time that they took.", s.Spent.Seconds()),
			meter.Level("probe_snapshot_interval_seconds", "How far they are apart: a process that lived shorter than that may not have been seen.", s.Interval.Seconds()))
	}
	return all
}
