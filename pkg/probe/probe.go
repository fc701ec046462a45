// Package probe watches the kernel and turns what it sees of CNI plugins into
// events: every process of every plugin's tree, what it ran and how it ended.
//
// The kernel side (bpf/) decides what belongs to a plugin, the decoder takes raw bytes apart and sanitises
// them, the reader drains the ring buffer into the sink. Nothing here is in the way of a plugin: if the
// reader stalls the ring fills up, and what does not fit is counted.
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
	// Source is by what means processes are observed; empty is SourceAuto.
	Source string
	// Ring is the size of the ring buffer in bytes: a power of two, at least a page. It is part of the resident
	// memory, though not as anonymous memory.
	Ring int
	// Processes is how many processes of plugin trees are tracked at once.
	Processes int
	// Arguments says which arguments of commands are kept.
	Arguments arguments.Mode
	// Detail says when the inside of plugins is looked into; Linger how long after the
	// last call that goes on at most, with DetailAuto.
	Detail Detail
	Linger time.Duration
	// MinSpan is how long a question to the kernel takes that is told by itself; of shorter ones an image's
	// number and time are told when it ends. 0 tells all.
	MinSpan time.Duration
	// Agents are globs on the programs (at most 15 bytes, as the kernel keeps them) that
	// serve plugins and are to be followed from their first call on.
	Agents []string
	// Depth is how far agents are followed: 0 not at all, 1 those that plugins call, 2
	// also those that these call.
	Depth int
	// Anchors are the processes of the container runtime; nil: none is known, ever.
	Anchors *anchor.Set
	// Rootless: what a runtime in a user namespace runs is believed, too.
	Rootless bool
	// Apart is the command that observes by the process connector in a process of its own; empty: it is done in
	// this one.
	Apart []string
	// Way is how the inside of plugins is reached; empty: as the kernel allows it best. For tests.
	Way string
	// Busy reports whether somebody still waits for ticks: operations that are over
	// but not closed. May be nil.
	Busy func() bool
	// Log gets what an operator should know.
	Log *slog.Logger
}

// The values of Options.Source. Those but SourceAuto are also what event.Origin says.
const (
	// SourceAuto: BPF programs, and where the machine refuses these the process connector; on Windows event tracing,
	// and where that is refused snapshots.
	SourceAuto = "auto"
	// SourceBPF: BPF programs or nothing.
	SourceBPF = "bpf"
	// SourceConnector: the process connector, which sees plugins and commands, and nothing inside of them.
	SourceConnector = "connector"
	// SourceETW: event tracing of Windows or nothing.
	SourceETW = "etw"
	// SourceSnapshots: snapshots of Windows' process table, which sees what lasts longer than the time between two.
	SourceSnapshots = "snapshots"
	// SourceCommands is no option: BPF programs, of which the machine refuses those that look into processes.
	SourceCommands = "bpf-commands"
)

// Detail says when the inside of plugins is looked into. While it is by system calls (kernel.WaySystemCalls), every one
// of the node costs some 80 ns more.
type Detail string

// The values of Detail.
const (
	// DetailAuto: while a call of ADD, DEL, CHECK or GC is under way, and for a while after it.
	DetailAuto Detail = "auto"
	// DetailAlways: nothing is missed, not even what a plugin does in its first half millisecond.
	DetailAlways Detail = "always"
	// DetailCommands: never.
	DetailCommands Detail = "commands"
)

// Stats is what the probe has done so far.
type Stats struct {
	// Tracked is the number of processes in the kernel's table.
	Tracked int
	// Lost counts by reason (event.Lost) what could not be sent or followed, and programs whose
	// environment was too long to be searched for CNI_COMMAND to its end.
	Lost map[string]uint64
	// Attached is how long system calls were looked into, of all the time since the
	// probe was opened: Observed.
	Attached, Observed time.Duration
	// Way is how the inside of plugins is reached: kernel.WayFunctions or kernel.WaySystemCalls; empty where it is not.
	Way string
	// Talked is how long what agents say to each other was looked into, by every system call of the node, where the
	// rest is reached by functions.
	Talked time.Duration
	// Undecodable counts records that the decoder did not understand.
	Undecodable uint64
	// Unfound counts waits of agents for a process that was not found before they ended.
	Unfound uint64
	// Programs are the BPF programs' run counts and times, by name; zero unless the
	// kernel's BPF statistics are on (sysctl kernel.bpf_stats_enabled).
	Programs map[string]ProgramStats
}

// ProgramStats is the cost of one BPF program.
type ProgramStats struct {
	Runs uint64
	Time time.Duration
	// Missed is how often the kernel did not run it, because it was under way on that CPU
	// already (it was preempted, as newer kernels do, or interrupted). Always counted, from Linux 5.12.
	Missed uint64
}

// UnsupportedError says that this machine cannot do what the probe needs, and what would help.
type UnsupportedError = kernel.UnsupportedError
