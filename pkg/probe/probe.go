// Package probe observes processes of CNI plugins in the kernel. The kernel side (bpf/) selects processes, the
// decoder sanitizes, the reader drains the ring. Plugins never wait: a full ring drops and counts records.
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
	// Source is a Source constant; empty: SourceAuto.
	Source string
	// Ring is in bytes: a power of two, at least a page. It is not anonymous memory.
	Ring int
	// Processes bounds the followed processes.
	Processes int
	Arguments arguments.Mode
	// Linger bounds tracing after a call, with DetailAuto.
	Detail Detail
	Linger time.Duration
	// MinSpan is the shortest reported query of the kernel; shorter ones are summed up. 0: all.
	MinSpan time.Duration
	// Agents are globs of program names (15 bytes), followed from the first call on.
	Agents []string
	// Depth: 0 no agents, 1 plugins' agents, 2 also agents of these.
	Depth int
	// Anchors may be nil.
	Anchors *anchor.Set
	// Rootless trusts runtimes in user namespaces.
	Rootless bool
	// Apart is the process connector's subprocess command; may be empty.
	Apart []string
	Way   string
	// Busy reports whether operations wait for ticks. May be nil.
	Busy func() bool
	Log  *slog.Logger
}

// The values of Options.Source, and of event.Origin except SourceAuto.
const (
	// SourceAuto prefers BPF to the process connector, and event tracing to snapshots.
	SourceAuto = "auto"
	SourceBPF  = "bpf"
	// no system calls
	SourceConnector = "connector"
	SourceETW       = "etw"
	// misses processes between two snapshots
	SourceSnapshots = "snapshots"
	// BPF whose system-call tracing was refused; no option
	SourceCommands = "bpf-commands"
)

// Detail controls system-call tracing, which with kernel.WaySystemCalls costs 80 ns per system call of the node.
type Detail string

// The values of Detail.
const (
	// during and after ADD, DEL, CHECK or GC
	DetailAuto Detail = "auto"
	// includes a plugin's first half millisecond
	DetailAlways   Detail = "always"
	DetailCommands Detail = "commands"
)

// Stats are the probe's counters.
type Stats struct {
	// in the kernel's table
	Tracked int
	// Lost is by reason, with environments too long to search for CNI_COMMAND.
	Lost map[string]uint64
	// Attached is how long tracing was on, of Observed.
	Attached, Observed time.Duration
	// kernel.Way; empty without tracing
	Way string
	// Talked is how long system calls traced agents' streams, with kernel.WayFunctions.
	Talked      time.Duration
	Undecodable uint64
	// agents' waits for processes that were not found
	Unfound uint64
	// by name; runs and times need sysctl kernel.bpf_stats_enabled
	Programs map[string]ProgramStats
}

// ProgramStats is the cost of one BPF program.
type ProgramStats struct {
	Runs uint64
	Time time.Duration
	// Missed runs: the program was running on that CPU. Since Linux 5.12.
	Missed uint64
}

// UnsupportedError names what the machine lacks for the probe, and the remedy.
type UnsupportedError = kernel.UnsupportedError
