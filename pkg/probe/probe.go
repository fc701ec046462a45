// Package probe observes the processes of CNI plugins in the kernel. The kernel side (bpf/) selects processes, the
// decoder sanitizes, the reader drains the ring buffer into the sink. Plugins never wait: a full ring drops and
// counts records.
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
	// Ring is the ring buffer's size in bytes, a power of two, at least a page. It is resident, but not anonymous
	// memory.
	Ring int
	// Processes bounds the followed processes.
	Processes int
	Arguments arguments.Mode
	// Linger is the longest time that tracing stays on after a call, with DetailAuto.
	Detail Detail
	Linger time.Duration
	// MinSpan is the duration of a reported query of the kernel; shorter ones are summed up. 0: all.
	MinSpan time.Duration
	// Agents are globs of program names (up to 15 bytes), followed from the first call on.
	Agents []string
	// Depth of followed agents: 0 none, 1 those of plugins, 2 also those of these.
	Depth int
	// Anchors may be nil: unknown.
	Anchors *anchor.Set
	// Rootless trusts runtimes in user namespaces also.
	Rootless bool
	// Apart is the process connector's subprocess command; may be empty.
	Apart []string
	// Way is kernel.Options.Way, for tests.
	Way string
	// Busy reports whether operations wait for ticks. May be nil.
	Busy func() bool
	Log  *slog.Logger
}

// The values of Options.Source, and of event.Origin without SourceAuto.
const (
	// SourceAuto prefers BPF to the process connector, and event tracing to snapshots.
	SourceAuto = "auto"
	// SourceBPF: BPF programs or nothing.
	SourceBPF = "bpf"
	// SourceConnector does not see system calls.
	SourceConnector = "connector"
	SourceETW       = "etw"
	// SourceSnapshots miss processes between two.
	SourceSnapshots = "snapshots"
	// SourceCommands is BPF without refused system-call tracing, and no option.
	SourceCommands = "bpf-commands"
)

// Detail controls system-call tracing, which with kernel.WaySystemCalls costs the node 80 ns per system call.
type Detail string

// The values of Detail.
const (
	// during and after ADD, DEL, CHECK or GC
	DetailAuto Detail = "auto"
	// even a plugin's first half millisecond is seen
	DetailAlways   Detail = "always"
	DetailCommands Detail = "commands"
)

// Stats are the probe's counters.
type Stats struct {
	// Tracked is in the kernel's table.
	Tracked int
	// Lost is by reason, and includes environments too long to be searched for CNI_COMMAND.
	Lost map[string]uint64
	// Attached is how long tracing was on, of Observed.
	Attached, Observed time.Duration
	// Way is a kernel.Way; empty without tracing.
	Way string
	// Talked is how long system calls traced agents' streams, if functions trace the rest.
	Talked      time.Duration
	Undecodable uint64
	// Unfound counts agents' waits for processes that were not found.
	Unfound uint64
	// Programs are statistics by name; runs and times need sysctl kernel.bpf_stats_enabled.
	Programs map[string]ProgramStats
}

// ProgramStats is the cost of one BPF program.
type ProgramStats struct {
	Runs uint64
	Time time.Duration
	// Missed counts runs that the kernel skipped, because the program was running on that CPU. Since Linux 5.12.
	Missed uint64
}

// UnsupportedError names what this machine lacks for the probe, and the remedy.
type UnsupportedError = kernel.UnsupportedError
