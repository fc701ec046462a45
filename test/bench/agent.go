//go:build linux

package main

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/probe"
)

const (
	agentName = "bench-agent"
	agentAt   = "BENCH_AGENT"
)

// asAgent runs the agent: for each byte it runs a command, or writes and reads, and answers with a byte.
func asAgent() error {
	l, err := net.Listen("unix", os.Getenv(agentAt))
	if err != nil {
		return err
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		for b := [1]byte{}; ; {
			if _, err := io.ReadFull(c, b[:]); err != nil {
				break
			}
			if err = agentDoes(b[0]); err == nil {
				_, err = c.Write(b[:])
			}
			if err != nil {
				return err
			}
		}
		c.Close()
	}
}

func agentDoes(what byte) error {
	switch what {
	case overStream:
		ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		return errors.Join(moves(ends[0], ends[1]), unix.Close(ends[0]), unix.Close(ends[1]))
	case overFile:
		fd, err := unix.Open("/dev/zero", unix.O_RDWR, 0)
		if err != nil {
			return err
		}
		return errors.Join(moves(fd, fd), unix.Close(fd))
	}
	return runTrue(nil, 0)
}

func asCaller() error {
	c, err := net.Dial("unix", os.Getenv(agentAt))
	if err != nil {
		return err
	}
	defer c.Close()
	for b := [1]byte{}; ; {
		if _, err := io.ReadFull(os.Stdin, b[:]); err != nil {
			return nil
		}
		if _, err := c.Write(b[:]); err != nil {
			return err
		}
		if _, err := io.ReadFull(c, b[:]); err != nil {
			return err
		}
		if _, err := os.Stdout.Write(b[:]); err != nil {
			return err
		}
	}
}

// besideAgent runs f with a probe and an agent. file is the calling program.
func besideAgent(ctx context.Context, f func(ctx context.Context, h *hooks, file, dir, where string) ([]row, error)) ([]row, error) {
	return probed(ctx, probe.Options{Ring: 4 << 20, Detail: probe.DetailAlways}, func(ctx context.Context, h *hooks) ([]row, error) {
		return h.withAgent(ctx, f)
	})
}

func (h *hooks) withAgent(ctx context.Context, f func(ctx context.Context, h *hooks, file, dir, where string) ([]row, error)) ([]row, error) {
	dir, err := os.MkdirTemp("", "cniscope-bench")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file, err := pluginIn(dir)
	if err != nil {
		return nil, err
	}
	where := agentAt + "=" + filepath.Join(dir, "agent.sock")
	agent := exec.Command(file)
	agent.Args[0], agent.Env, agent.Stderr = agentName, []string{where}, os.Stderr
	if err := agent.Start(); err != nil {
		return nil, err
	}
	defer func() { _ = agent.Process.Kill(); _ = agent.Wait() }()
	for range 500 {
		if _, err := os.Stat(filepath.Join(dir, "agent.sock")); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return f(ctx, h, file, dir, where)
}

func measureAgents(ctx context.Context, _ settings) ([]row, error) {
	return besideAgent(ctx, agentCommands)
}

func agentCommands(ctx context.Context, h *hooks, file, dir, where string) (rows []row, err error) {
	kinds := []*kind{
		newKind("an agent's command, no caller", 0, append(environment(35, 2560), where), 0),
		newKind("an agent's command, a plugin calls it", 0, append(pluginEnvironment(dir), where), 0),
	}
	for range hookRounds {
		for _, k := range kinds {
			if err := h.untilQuiet(ctx); err != nil {
				return nil, err
			}
			round := newCosts("wall")
			if err := h.onePlugin(file, k.env, costs{"exec": {}}, round); err != nil {
				return nil, err
			}
			k.cost.add(round)
		}
	}
	for _, k := range kinds {
		for _, name := range []string{"exec", "fork", "exit"} {
			rows = append(rows, k.cost[name].row(name+" hook, "+k.figure, 0))
		}
		rows = append(rows, k.cost["wall"].row("from asking to the answer, "+k.figure, 0))
	}
	return rows, nil
}

func (h *hooks) untilQuiet(ctx context.Context) error {
	for range 600 {
		if h.probe.Stats().Tracked == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	return errors.New("other CNI calls are in progress; run it on a quiet machine")
}
