// Package etw observes processes through Event Tracing for Windows with two real-time sessions.
// Microsoft-Windows-Kernel-Process reports creation, exit and resource usage; the system logger's process events add
// the command line. A Sequencer joins both.
//
// Only the session uses Windows. Decoders, the Sequencer and the reader of .etl files are pure and portable, and
// accept any bytes.
package etw

import (
	"fmt"
	"log/slog"

	"github.com/cniscope/cniscope/pkg/probe/proctracker"
)

// Change is the start or the end of a process, joined from both sessions.
type Change struct {
	// Notice is Began or Ended, with Time in ns of the trace's clock; for a Session, clock.Monotonic, which is
	// QueryPerformanceCounter on Windows.
	proctracker.Notice
	// Created is the creation time as a FILETIME (100 ns since 1601, UTC), equal to NtQuerySystemInformation's
	// and GetProcessTimes'. 0 if only the system logger reported the process.
	Created int64
	// Present means that it ran before the session began.
	Present bool
	// Image is the program's kernel path (`\Device\HarddiskVolume3\…\bridge.exe`), or only the file name; for an
	// end possibly its first 14 characters.
	Image string
	// CommandLine is empty unless the system logger reported it.
	CommandLine string
}

// Taker receives a Session's reports. Session.Run's goroutine makes all calls and waits for each.
type Taker interface {
	// Soon reports a start about 25 ms after it, before its turn, so that the process can be read. Take follows.
	// created is 0 if unknown.
	Soon(pid uint32, created int64)
	// Take receives a change in order.
	Take(Change)
	// Lost reports n lost events.
	Lost(n uint64)
	// Advance reports that all changes before read, in ns of the changes' clock, were taken.
	Advance(read int64)
}

// Options of a Session.
type Options struct {
	// Name is the prefix of the sessions' names in `logman query -ets`.
	Name string
	Log  *slog.Logger
}

// Stats counts events of a Session.
type Stats struct {
	// Events counts delivered events, Changes the resulting changes.
	Events, Changes uint64
	// Unknown counts process events of unsupported versions, Malformed those that are too short; both are
	// ignored. Keys are like "Kernel-Process start v9".
	Unknown, Malformed map[string]uint64
	// LostEvents and LostBuffers were lost by Windows.
	LostEvents, LostBuffers uint64
	// Late counts changes after their turn, Single those that only one session reported.
	Late, Single uint64
}

// Remedies of a RefusedError.
const (
	remedyPrivilege = "run cniscope as SYSTEM or as an administrator"
	remedyFull      = "stop an unused session: `logman query -ets` lists all, `logman stop NAME -ets` stops a session"
	remedyTaken     = "another program already records: `logman query -ets` lists the sessions, `logman stop NAME " +
		"-ets` stops one"
	remedyUnsupported = "it needs Windows Server 2016 or later"
	remedyOther       = "please report it"
)

// RefusedError is a refusal of Windows with a remedy.
type RefusedError struct {
	// Doing is the failed function, such as "StartTrace cniscope-process".
	Doing, Remedy string
	Err           error
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("event tracing (%s): %v; %s", e.Doing, e.Err, e.Remedy)
}

func (e *RefusedError) Unwrap() error { return e.Err }
