// Package etw observes processes through Event Tracing for Windows with two real-time sessions.
// Microsoft-Windows-Kernel-Process reports creation, exit and resource usage; the system logger adds the command line.
package etw

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/cniscope/cniscope/pkg/meter"
	"github.com/cniscope/cniscope/pkg/probe/proctracker"
)

// Change is the start or end of a process, joined from both sessions.
type Change struct {
	// Notice is Began or Ended. Time is in ns of the trace's clock; a Session's is clock.Monotonic
	// (QueryPerformanceCounter on Windows).
	proctracker.Notice
	// Created is a FILETIME (100 ns since 1601, UTC), equal to NtQuerySystemInformation's and GetProcessTimes'; 0 from
	// the system logger alone.
	Created int64
	// Image is a kernel path (`\Device\HarddiskVolume3\…\bridge.exe`) or a file name; an end may have its first 14
	// characters.
	Image       string
	CommandLine string
}

// Taker receives a Session's reports, all from Session.Run's goroutine.
type Taker interface {
	// Soon reports a start after about 25 ms, so that the process can be read. Take follows. created is 0 if unknown.
	Soon(pid uint32, created int64)
	Take(Change)
	Lost(n uint64)
	// Advance reports that all changes before read (ns) were taken.
	Advance(read int64)
}

// Options of a Session.
type Options struct {
	// Name is the prefix in `logman query -ets`.
	Name string
	Log  *slog.Logger
}

// Stats counts a Session's events.
type Stats struct {
	Events, Changes uint64
	// Unknown counts process events of unsupported versions, Malformed too short ones, by keys like "Kernel-Process start
	// v9".
	Unknown, Malformed      map[string]uint64
	LostEvents, LostBuffers uint64
	// Late counts changes that came after their turn, Single those that only one session reported.
	Late, Single uint64
}

const remedyUnsupported = "it needs Windows Server 2016 or later"

// RefusedError is a refusal of Windows with a remedy.
type RefusedError struct {
	Doing, Remedy string
	Err           error
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("event tracing (%s): %v; %s", e.Doing, e.Err, e.Remedy)
}

func (e *RefusedError) Unwrap() error { return e.Err }

const (
	undecodable = "Unknown events of event tracing, by event and reason. Report them with a recording (cniscope record " +
		"--etl)."
	lost = "Events and buffers that Windows lost."
)

// Readings returns the metrics.
func (s Stats) Readings() []meter.Reading {
	all := []meter.Reading{
		meter.Count("etw_events_total", "Process starts and exits that event tracing delivered (Windows).", s.Events),
		meter.Count("etw_changes_total", "Starts and exits of processes in these events.", s.Changes),
		meter.Count("etw_changes_single_total", "Starts and exits that only one of the two sessions reported.", s.Single),
		meter.Count("etw_changes_late_total", "Starts and exits that arrived out of order.", s.Late),
		meter.Count("etw_lost_total", lost, s.LostEvents, "what", "events"),
		meter.Count("etw_lost_total", lost, s.LostBuffers, "what", "buffers"),
	}
	for why, counts := range map[string]map[string]uint64{"version": s.Unknown, "cut off": s.Malformed} {
		for _, event := range slices.Sorted(maps.Keys(counts)) {
			all = append(all, meter.Count("etw_events_undecodable_total", undecodable, counts[event], "event", event, "why",
				why))
		}
	}
	return all
}
