// Package etw observes processes by Event Tracing for Windows: two real-time sessions tell of each start and
// end. Microsoft-Windows-Kernel-Process says when a process was created, how it ended and what it consumed; the
// system logger's process events have the command line, which the former lacks. A Sequencer makes one of the two.
//
// Only the session itself talks to Windows. Decoders, the Sequencer and the reader of .etl
// files are pure, run everywhere, and take any bytes.
package etw

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/cniscope/cniscope/pkg/probe/proctracker"
)

// Change is that a process began or ended, as both sessions tell it.
type Change struct {
	// Notice is Began or Ended. Its Time is in ns of the clock that the trace is stamped by: of a Session
	// clock.Monotonic, which is QueryPerformanceCounter on Windows.
	proctracker.Notice
	// Created is when the process was created: a FILETIME (100 ns since 1601, UTC), the same that
	// NtQuerySystemInformation and GetProcessTimes give. 0 if only the system logger told of it.
	Created int64
	// Present: it ran already when the session began.
	Present bool
	// Image is the path of its program as the kernel names it (`\Device\HarddiskVolume3\…\bridge.exe`); only the
	// file's name where that is all that was told, and of an end only its first 14 letters may be.
	Image string
	// CommandLine is empty if the system logger did not tell it.
	CommandLine string
	// User is the SID ("S-1-5-18") that it runs as, Terminal the number of its terminal services session.
	User     string
	Terminal uint32
	// Creator is who called CreateProcess, which may have named another parent; of a start.
	Creator uint32
	// Cycles of a CPU that it took; of an end.
	Cycles uint64
}

// Notices are what a proctracker.Tracker takes of a change: on Windows a process runs one program, from its
// first to its last instant. Of one that is Present there are none: its Time is when it was told of.
func (c Change) Notices() []proctracker.Notice {
	switch {
	case c.Present:
		return nil
	case c.Kind != proctracker.Began:
		return []proctracker.Notice{c.Notice}
	}
	runs := c.Notice
	runs.Kind, runs.Parent = proctracker.Runs, 0
	return []proctracker.Notice{c.Notice, runs}
}

// Taker takes what a Session tells. All calls come from the goroutine of Session.Run, and hold it up.
type Taker interface {
	// Soon is told of a start as soon as either session has told of it, some 25 ms after it and before its
	// turn: whoever has to look at the process does so now. Take follows. created is 0 if it is not known yet.
	Soon(pid uint32, created int64)
	// Take takes a change in its turn.
	Take(Change)
	// Lost is told that Windows could not deliver so many events, at least one.
	Lost(n uint64)
	// Advance is told that each change before read, in ns of the changes' clock, was taken.
	Advance(read int64)
}

// Options of a Session.
type Options struct {
	// Name is what the sessions' names begin with: `logman query -ets` lists them. Empty: "cniscope".
	Name string
	// Flush is how often Windows delivers what has collected. 0: 20 ms.
	Flush time.Duration
	// Log gets what an operator should know. May be nil.
	Log *slog.Logger
}

// Stats is what a Session has counted.
type Stats struct {
	// Events were delivered by Windows; Changes became of them.
	Events, Changes uint64
	// Unknown counts events of processes in a version that no decoder is for, and Malformed those that are too
	// short for theirs: of neither anything was read. The key is "Kernel-Process start v9".
	Unknown, Malformed map[string]uint64
	// LostEvents and LostBuffers are what Windows could not deliver.
	LostEvents, LostBuffers uint64
	// Late counts changes that came after their turn; Single those that only one of the sessions told of.
	Late, Single uint64
}

// Refusal is why a Session cannot be had.
type Refusal string

// The refusals.
const (
	// RefusedPrivilege: only administrators, SYSTEM and the group Performance Log Users may trace.
	RefusedPrivilege Refusal = "privilege"
	// RefusedFull: the machine has all the sessions that it may have: 64, of them 8 system loggers.
	RefusedFull Refusal = "sessions"
	// RefusedTaken: a session of that name is running.
	RefusedTaken Refusal = "taken"
	// RefusedUnsupported: this system cannot trace: another than Windows, or Wine.
	RefusedUnsupported Refusal = "unsupported"
	// RefusedOther: Windows gave another error.
	RefusedOther Refusal = "error"
)

// RefusedError says why Windows does not trace for us, and what would help.
type RefusedError struct {
	Why Refusal
	// Doing is the function that failed, as "StartTrace cniscope-process".
	Doing string
	Err   error // may be nil
}

func (e *RefusedError) Error() string {
	cause := ""
	if e.Err != nil {
		cause = ": " + e.Err.Error()
	}
	return fmt.Sprintf("event tracing (%s)%s; %s", e.Doing, cause, e.remedy())
}

func (e *RefusedError) remedy() string {
	switch e.Why {
	case RefusedPrivilege:
		return "run cniscope as SYSTEM or as an administrator"
	case RefusedFull:
		return "stop a session that nobody needs: `logman query -ets` lists all, `logman stop NAME -ets` stops one"
	case RefusedTaken:
		return "somebody records already: `logman query -ets` lists the sessions, `logman stop NAME -ets` ends one that was left behind"
	case RefusedUnsupported:
		return "it needs Windows Server 2016 or later"
	}
	return "please report it"
}

func (e *RefusedError) Unwrap() error { return e.Err }
