// Package probe observes CNI plugins in the kernel. The kernel side (bpf/) selects processes, the decoder sanitizes,
// the reader drains the ring. Plugins never wait: a full ring drops and counts records.
package probe

import (
	"log/slog"
	"time"

	"github.com/cniscope/cniscope/pkg/anchor"
	"github.com/cniscope/cniscope/pkg/probe/arguments"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
)

// Options of a probe.
type Options struct {
	// a Source constant; empty: SourceAuto
	Source string
	// bytes: a power of two, at least a page; resident, but not anonymous
	Ring      int
	Processes int
	Arguments arguments.Mode
	// Off detaches everything.
	Off bool
	// Linger bounds tracing after a call, with DetailAuto.
	Detail Detail
	Linger time.Duration
	// the shortest reported query of the kernel; others are summed up; 0: all
	MinSpan time.Duration
	// globs of program names (15 bytes), followed from the first call on
	Agents []string
	// 0: no agents, 1: plugins' agents, 2: also their agents
	Depth int
	// may be nil
	Anchors *anchor.Set
	// Rootless trusts runtimes in user namespaces.
	Rootless bool
	// the process connector's subprocess command; may be empty
	Apart []string
	Way   string
	// Busy reports whether operations wait for ticks; may be nil.
	Busy func() bool
	Log  *slog.Logger
}

// The values of Options.Source, and of event.Origin except SourceAuto.
const (
	// SourceAuto prefers BPF to the process connector, and event tracing to snapshots.
	SourceAuto = "auto"
	SourceBPF  = "bpf"
	// without system calls
	SourceConnector = "connector"
	SourceETW       = "etw"
	SourceSnapshots = "snapshots"
	// BPF whose system-call tracing was refused; not a value of Options.Source
	SourceCommands = "bpf-commands"
)

// Detail controls system-call tracing, which with kernel.WaySystemCalls costs each system call 80 ns.
type Detail string

// The values of Detail.
const (
	// during and after ADD, DEL, CHECK or GC
	DetailAuto Detail = "auto"
	// also a plugin's first half millisecond
	DetailAlways   Detail = "always"
	DetailCommands Detail = "commands"
)

// Stats are the probe's counters.
type Stats struct {
	Tracked int
	// by reason, also environments too long to search for CNI_COMMAND
	Lost map[string]uint64
	// how long system-call tracing was on, and how long the probe was attached
	Attached, Observed time.Duration
	// kernel.Way; empty without tracing
	Way string
	// how long system calls traced agents' streams, with kernel.WayFunctions
	Talked      time.Duration
	Undecodable uint64
	// agents' waits for processes that were not found
	Unfound uint64
	// of threads' spans
	Garbled uint64
	// runs and times need sysctl kernel.bpf_stats_enabled
	Programs map[string]ProgramStats
}

// ProgramStats is the cost of one BPF program.
type ProgramStats struct {
	Runs uint64
	Time time.Duration
	// runs skipped while it was running on that CPU; since Linux 5.12
	Missed uint64
}

// UnsupportedError names what the machine lacks, and the remedy.
type UnsupportedError = kernel.UnsupportedError
