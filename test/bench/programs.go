//go:build linux

package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cilium/ebpf"
)

// ran is what the BPF programs of a process have run for, by name, on behalf of whoever
// they watched. Zero while the kernel's BPF statistics are off.
type ran map[string]time.Duration

var errNoPrograms = errors.New("it has no BPF programs")

// programs asks the kernel about the programs that a process holds.
func programs(pid int) (ran, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", pid))
	if err != nil {
		return nil, err
	}
	sum := ran{}
	seen := map[string]bool{}
	for _, file := range files {
		fields, err := status(file)
		id := fields["prog_id"]
		// A link has the id of its program, too, and no run time.
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
		sum[name] += time.Duration(ns)
	}
	if len(seen) == 0 {
		return nil, fmt.Errorf("process %d: %w", pid, errNoPrograms)
	}
	return sum, nil
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

func (r ran) sum() (all time.Duration) {
	for _, d := range r {
		all += d
	}
	return all
}

// since is what each has run for since before.
func (r ran) since(before ran) ran {
	delta := ran{}
	for name, d := range r {
		delta[name] = d - before[name]
	}
	return delta
}

// said names the programs with the time of each, the most expensive first.
func (r ran) said() string {
	var parts []string
	for _, name := range slices.SortedFunc(maps.Keys(r), func(a, b string) int { return cmp.Compare(r[b], r[a]) }) {
		if r[name] > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", name, short(milli(r[name]))))
		}
	}
	return strings.Join(parts, ", ")
}

func milli(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
