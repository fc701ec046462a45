//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/probe/kernel"
)

// A pod's plugins are runs with commands: about a quarter of bridge's and portmap's in the same proportions. Per
// program the cheapest pod counts, since preemption adds other programs' instructions.
const (
	runs = 4
	pods = 4
)

// emptyTurns is the batch size for an empty program, of which the cheapest batch counts.
const emptyTurns = 20

// priced is the BPF programs' cost for a pod's runs in one way.
type priced struct {
	Way      string                `json:"way"`
	Programs map[string]programRun `json:"programs"`
}

// programRun is a program's total cost in instructions.
type programRun struct {
	Runs  uint64 `json:"runs"`
	Took  int64  `json:"took"`
	Empty int64  `json:"empty"` // an empty program's measured cost for as many runs
}

// price runs a pod's plugins in both ways and prints each BPF program's cost.
func price(to io.Writer, _ string, _ int) error {
	debug.SetGCPercent(-1)
	stats, err := ebpf.EnableStats(unix.BPF_STATS_RUN_TIME)
	if err != nil {
		return err
	}
	defer stats.Close()
	if err := errors.Join(loopback(true), os.Symlink("/pod", filepath.Join(pluginFolder, "pod")), os.WriteFile("/bin/asking", asking(), 0o755)); err != nil {
		return err
	}
	atTracepoint, err := empty(&ebpf.ProgramSpec{Type: ebpf.Tracing, AttachType: ebpf.AttachTraceRawTp, AttachTo: "sys_enter"})
	if err != nil {
		return fmt.Errorf("an empty program: %w", err)
	}
	atFunction, err := empty(&ebpf.ProgramSpec{Type: ebpf.Tracing, AttachType: ebpf.AttachTraceFEntry, AttachTo: "pipe_fcntl"})
	if err != nil {
		return fmt.Errorf("an empty program: %w", err)
	}
	fmt.Fprintf(to, "\nempty %d %d\n", atTracepoint, atFunction)
	m := meter{atTracepoint: atTracepoint, atFunction: atFunction}
	if m.functions, err = functionPrograms(); err != nil {
		return err
	}
	for _, way := range []string{byFunction, bySystemCall} {
		p, _, err := startProbe(way)
		if err != nil {
			return err
		}
		tell := func() error {
			programs, err := m.cheapest(pods, func() error { return succeed(command("pod")) })
			return errors.Join(err, line(to, "priced", priced{way, programs}))
		}
		if err := p.duringACall(func() error { return p.stopped(tell) }); err != nil {
			return err
		}
		if err := errors.Join(p.end.Close(), p.Wait()); err != nil {
			return err
		}
	}
	for range comparisons {
		for _, program := range []string{cniscope, without} {
			s, err := m.program(program)
			if err := errors.Join(err, line(to, "spent", s)); err != nil {
				return err
			}
		}
	}
	return nil
}

// without is cniscope without names of functions and drops; both run in turns.
const (
	without     = "/cniscope-without"
	comparisons = 2
	manyPods    = 48 // garbage collections come by chance
)

// meter measures BPF programs, and subtracts an empty program's cost.
type meter struct {
	atTracepoint, atFunction int64
	functions                map[string]bool
}

// spent is the cost of a running cniscope.
type spent struct {
	Name      string                `json:"name"`
	Took      int64                 `json:"took"` // by the process for a pod, the kernel's for it included
	Programs  map[string]programRun `json:"programs"`
	Untracked programRun            `json:"untracked"` // on_fork for other processes
	Followed  int                   `json:"followed"`  // pods whose drops are observed if they wait
}

// over exceeds limits.settle, after which a pod's operation is judged and exported.
const over = 5 * time.Second

// program measures a running cniscope.
func (m meter) program(name string) (s spent, err error) {
	s.Name = name
	c, err := startProgram(name, options)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	var until [2]unix.Timespec
	for i, count := range [...]int{pods, manyPods} { // the first are not counted: cniscope reads the programs' files
		if s.Programs, s.Followed, err = m.pods(count); err != nil {
			return s, err
		}
		if err := unix.ClockGettime(int32(^c.Process.Pid<<3|2), &until[i]); err != nil { // of the process, see clock_getcpuclockid(3)
			return s, err
		}
	}
	s.Took = (until[1].Nano() - until[0].Nano()) / manyPods
	forks, err := m.cheapest(pods, func() error { return exec.Command("/bin/asking").Run() })
	s.Untracked = forks["on_fork"]
	return s, err
}

func succeed(cmd *exec.Cmd) error {
	c, err := finish(cmd)
	if err == nil && c.state.ExitStatus() != 0 {
		err = fmt.Errorf("the plugin ended with %d", c.state.ExitStatus())
	}
	return err
}

// cheapest has pods of runs and returns each BPF program's minimum.
func (m meter) cheapest(pods int, run func() error) (map[string]programRun, error) {
	programs, err := loadedPrograms()
	if err != nil {
		return nil, err
	}
	defer forget(programs)
	cheapest := map[string]programRun{}
	for range pods {
		before, err := ran(programs)
		if err != nil {
			return nil, err
		}
		for range runs {
			if err := run(); err != nil {
				return nil, err
			}
		}
		now, err := ran(programs)
		if err != nil {
			return nil, err
		}
		for name, p := range now {
			p.Runs, p.Took = p.Runs-before[name].Runs, p.Took-before[name].Took
			p.Empty = int64(p.Runs) * m.atTracepoint
			if m.functions[name] {
				p.Empty = int64(p.Runs) * m.atFunction
			}
			if least, is := cheapest[name]; !is || p.Took < least.Took {
				cheapest[name] = p
			}
		}
	}
	return cheapest, nil
}

// functionPrograms returns the names of programs at kernel functions; others are at tracepoints.
func functionPrograms() (map[string]bool, error) {
	spec, err := kernel.LoadFunctions()
	if err != nil {
		return nil, err
	}
	at := map[string]bool{}
	for name, p := range spec.Programs {
		if p.AttachType == ebpf.AttachTraceFEntry || p.AttachType == ebpf.AttachTraceFExit {
			at[name[:min(len(name), 15)]] = true
		}
	}
	return at, nil
}

// ran returns each program's cost so far.
func ran(programs map[string]*ebpf.Program) (map[string]programRun, error) {
	all := map[string]programRun{}
	for name, p := range programs {
		stats, err := p.Stats()
		if err != nil {
			return nil, err
		}
		all[name] = programRun{Runs: stats.RunCount, Took: int64(stats.Runtime)}
	}
	return all, nil
}

// empty returns the measured cost of an empty program's run.
func empty(spec *ebpf.ProgramSpec) (int64, error) {
	spec.Name, spec.License, spec.Instructions = "empty", "Dual BSD/GPL", asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()}
	p, err := ebpf.NewProgram(spec)
	if err != nil {
		return 0, err
	}
	defer p.Close()
	l, err := link.AttachTracing(link.TracingOptions{Program: p})
	if err != nil {
		return 0, err
	}
	var pipe [2]int
	if err := unix.Pipe(pipe[:]); err != nil {
		return 0, err
	}
	lowest, before := int64(math.MaxInt64), new(ebpf.ProgramStats)
	for range batches {
		for range emptyTurns {
			call(unix.SYS_FCNTL, uintptr(pipe[0]), unix.F_GETPIPE_SZ)
		}
		now, err := p.Stats()
		if err != nil {
			return 0, err
		}
		if now.RunCount < before.RunCount+emptyTurns {
			return 0, fmt.Errorf("it ran %d times", now.RunCount)
		}
		lowest = min(lowest, int64(now.Runtime-before.Runtime)/int64(now.RunCount-before.RunCount))
		before = now
	}
	return lowest, errors.Join(l.Close(), unix.Close(pipe[0]), unix.Close(pipe[1]))
}
