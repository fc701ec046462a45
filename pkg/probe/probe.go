// Package probe observes the processes of CNI plugins in the kernel and turns what it sees into events.
//
// The kernel side (bpf/) decides which processes belong to a plugin, the decoder parses and sanitizes, the reader
// drains the ring buffer into the sink. Plugins never wait for the probe: a full ring drops and counts records.
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
	// Source is how processes are observed; empty: SourceAuto.
	Source string
	// Ring is the size of the ring buffer in bytes: a power of two, at least a page. It is resident, but not
	// anonymous memory.
	Ring int
	// Processes is the maximum of followed processes.
	Processes int
	Arguments arguments.Mode
	// Detail is when system-call tracing is on; Linger the longest time that it stays on after a call, with
	// DetailAuto.
	Detail Detail
	Linger time.Duration
	// MinSpan is the duration from which a query of the kernel is reported by itself; shorter ones are summed up per
	// image. 0 reports all.
	MinSpan time.Duration
	// Agents are globs of agents' program names (up to 15 bytes), which are followed from their first call on.
	Agents []string
	// Depth is how far agents are followed: 0 not at all, 1 those that plugins call, 2 also those that these call.
	Depth int
	// Anchors are the processes of the container runtime; nil: never known.
	Anchors *anchor.Set
	// Rootless trusts runtimes in user namespaces also.
	Rootless bool
	// Apart is the command of the process connector's subprocess; empty: none.
	Apart []string
	// Way is kernel.Options.Way, for tests.
	Way string
	// Busy reports whether finished operations still wait for ticks. May be nil.
	Busy func() bool
	Log  *slog.Logger
}

// The values of Options.Source; event.Origin reports the others than SourceAuto.
const (
	// SourceAuto prefers BPF to the process connector, and on Windows event tracing to snapshots.
	SourceAuto = "auto"
	// SourceBPF: BPF programs or nothing.
	SourceBPF = "bpf"
	// SourceConnector: the process connector, which sees plugins and commands, but not their system calls.
	SourceConnector = "connector"
	// SourceETW: event tracing of Windows or nothing.
	SourceETW = "etw"
	// SourceSnapshots: snapshots of Windows' process table, which miss processes between two.
	SourceSnapshots = "snapshots"
	// SourceCommands is no option: BPF programs without system-call tracing, which the machine refuses.
	SourceCommands = "bpf-commands"
)

// Detail is when system-call tracing is on. With kernel.WaySystemCalls it costs every system call of the node about
// 80 ns.
type Detail string

// The values of Detail.
const (
	// DetailAuto: during a call of ADD, DEL, CHECK or GC, and for a while after it.
	DetailAuto Detail = "auto"
	// DetailAlways: always, so that even a plugin's first half millisecond is seen.
	DetailAlways   Detail = "always"
	DetailCommands Detail = "commands"
)

// Stats are the probe's counters.
type Stats struct {
	// Tracked is the number of processes in the kernel's table.
	Tracked int
	// Lost counts losses by reason (event.Lost), and programs whose environment was too long to be searched for
	// CNI_COMMAND.
	Lost map[string]uint64
	// Attached is how long system-call tracing was on, of the time Observed since Open.
	Attached, Observed time.Duration
	// Way is kernel.WayFunctions or kernel.WaySystemCalls; empty without tracing.
	Way string
	// Talked is how long agents' streams were traced by system calls, while functions trace the rest.
	Talked      time.Duration
	Undecodable uint64
	// Unfound counts agents' waits for a process that was not found before they ended.
	Unfound uint64
	// Programs are the BPF programs' statistics by name; runs and times only if sysctl kernel.bpf_stats_enabled is
	// on.
	Programs map[string]ProgramStats
}

// ProgramStats is the cost of one BPF program.
type ProgramStats struct {
	Runs uint64
	Time time.Duration
	// Missed counts the times the kernel skipped it, because it was running on that CPU (preempted or interrupted).
	// Counted since Linux 5.12.
	Missed uint64
}

// UnsupportedError names what this machine lacks for the probe, and the remedy.
type UnsupportedError = kernel.UnsupportedError
