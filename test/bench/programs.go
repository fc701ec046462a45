//go:build linux

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// statistics are the kernel's BPF statistics, less their own cost, which empty programs measure.
type statistics struct {
	on      io.Closer
	empties []idleProgram
}

type idleProgram struct {
	program *ebpf.Program
	link    link.Link
}

// countRuns switches the statistics on.
func countRuns() (_ *statistics, err error) {
	s := &statistics{}
	if s.on, err = ebpf.EnableStats(unix.BPF_STATS_RUN_TIME); err != nil {
		return nil, fmt.Errorf("switching on the kernel's BPF statistics: %w", err)
	}
	for _, tracepoint := range []string{"sys_enter", "sys_exit", "sched_switch"} {
		if err := s.add(tracepoint); err != nil {
			return nil, errors.Join(fmt.Errorf("a program that does nothing: %w", err), s.Close())
		}
	}
	return s, nil
}

func (s *statistics) add(tracepoint string) error {
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.Tracing, AttachType: ebpf.AttachTraceRawTp, AttachTo: tracepoint, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	if err != nil {
		return err
	}
	l, err := link.AttachTracing(link.TracingOptions{Program: p})
	if err != nil {
		return errors.Join(err, p.Close())
	}
	s.empties = append(s.empties, idleProgram{p, l})
	return nil
}

func (s *statistics) Close() error {
	errs := []error{s.on.Close()}
	for _, e := range s.empties {
		errs = append(errs, e.link.Close(), e.program.Close())
	}
	return errors.Join(errs...)
}

// ran is the run time of a process's BPF programs by name; noProgram are the empty ones.
type ran map[string]runs

const noProgram = ""

type runs struct {
	took time.Duration
	n    int64
}

var errNoPrograms = errors.New("it has no BPF programs")

// programs queries the kernel about a process's programs.
func (s *statistics) programs(pid int) (ran, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", pid))
	if err != nil {
		return nil, err
	}
	sum := ran{}
	seen := map[string]bool{}
	for _, file := range files {
		fields, err := status(file)
		id := fields["prog_id"]
		// A link also has the program's id, without run time.
		if err != nil || id == "" || fields["run_time_ns"] == "" || seen[id] {
			continue
		}
		seen[id] = true
		name, err := programName(id)
		if err != nil {
			return nil, err
		}
		ns, err := strconv.ParseInt(fields["run_time_ns"], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		n, err := strconv.ParseInt(fields["run_cnt"], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		sum.add(name, time.Duration(ns), n)
	}
	if len(seen) == 0 {
		return nil, fmt.Errorf("process %d: %w", pid, errNoPrograms)
	}
	for _, e := range s.empties {
		now, err := e.program.Stats()
		if err != nil {
			return nil, fmt.Errorf("a program that does nothing: %w", err)
		}
		sum.add(noProgram, now.Runtime, int64(now.RunCount))
	}
	return sum, nil
}

func (r ran) add(name string, took time.Duration, n int64) {
	r[name] = runs{r[name].took + took, r[name].n + n}
}

func programName(id string) (string, error) {
	n, err := strconv.ParseUint(id, 10, 32)
	if err != nil {
		return "", err
	}
	p, err := ebpf.NewProgramFromID(ebpf.ProgramID(n))
	if err != nil {
		return "", err
	}
	defer p.Close()
	info, err := p.Info()
	if err != nil {
		return "", err
	}
	return strings.TrimPrefix(info.Name, "on_"), nil
}

// took is run time by program.
type took map[string]time.Duration

func (r ran) since(before ran) took {
	delta, own := took{}, r.empty(before)
	for name, now := range r {
		if was := before[name]; name != noProgram {
			delta[name] = now.took - was.took - time.Duration(float64(now.n-was.n)*own)
		}
	}
	return delta
}

func (r ran) empty(before ran) float64 {
	now, was := r[noProgram], before[noProgram]
	return float64(now.took-was.took) / float64(max(now.n-was.n, 1))
}

func (t took) sum() (all time.Duration) {
	for _, d := range t {
		all += d
	}
	return all
}

// less subtracts rest.
func (t took) less(rest took) took {
	net := took{}
	for name, d := range t {
		net[name] = d - rest[name]
	}
	return net
}

// said lists the programs by time.
func (t took) said() string {
	var parts []string
	for _, name := range slices.SortedFunc(maps.Keys(t), func(a, b string) int { return cmp.Compare(t[b], t[a]) }) {
		if t[name] > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", name, short(milli(t[name]))))
		}
	}
	return strings.Join(parts, ", ")
}

func milli(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
