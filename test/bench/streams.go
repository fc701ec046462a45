//go:build linux

package main

import (
	"context"
	"time"

	"golang.org/x/sys/unix"
)

const (
	overStream byte = 's' // write to and read from a stream
	overFile   byte = 'f' // the same with a file
)

const streamMoves = 10_000

func moves(to, from int) error {
	for b := [1]byte{}; b[0] < 100; b[0]++ {
		for range streamMoves / 100 {
			if _, err := unix.Write(to, b[:]); err != nil {
				return err
			}
			if _, err := unix.Read(from, make([]byte, 1)); err != nil {
				return err
			}
		}
	}
	return nil
}

// measureStreams measures an agent's reads and writes during calls of a plugin and of another program.
func measureStreams(ctx context.Context, _ settings) ([]row, error) {
	return besideAgent(ctx, func(ctx context.Context, h *hooks, file, dir, where string) ([]row, error) {
		kinds := []*kind{
			newKind("no caller", 0, append(environment(35, 2560), where), 0),
			newKind("a plugin calls it", 0, append(pluginEnvironment(dir), where), 0),
		}
		var costs [2]map[byte]*cost
		for i := range costs {
			costs[i] = map[byte]*cost{overStream: {}, overFile: {}}
		}
		for range hookRounds {
			for i, k := range kinds {
				if err := h.untilQuiet(ctx); err != nil {
					return nil, err
				}
				if err := h.moved(file, k.env, costs[i]); err != nil {
					return nil, err
				}
			}
		}
		var rows []row
		for i, k := range kinds {
			rows = append(rows,
				costs[i][overFile].row("hooks of an agent's read or write, a file, "+k.figure, 0),
				costs[i][overStream].row("hooks of an agent's read or write, a stream, "+k.figure, 0))
		}
		return rows, nil
	})
}

// moved has an agent do both once and adds the hooks' time per read or write, including unrelated system calls.
func (h *hooks) moved(file string, env []string, into map[byte]*cost) error {
	p, err := newPlugin(file, env)
	if err != nil {
		return err
	}
	if err := p.Start(); err != nil {
		return err
	}
	// The first one only starts following.
	for i, what := range []byte{overFile, overFile, overStream} {
		before := h.calls()
		if err := p.does(what); err != nil {
			return err
		}
		if i > 0 {
			took := float64((h.calls() - before).Nanoseconds()) / (2 * streamMoves) / 1000
			into[what].single, into[what].rounds = append(into[what].single, took), append(into[what].rounds, took)
		}
	}
	return p.end()
}

func (h *hooks) calls() time.Duration {
	programs := h.probe.Stats().Programs
	return programs["enter"].Time + programs["return"].Time
}
