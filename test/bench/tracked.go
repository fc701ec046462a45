//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// asPlugin runs the plugin: for each byte it runs a command and answers with a byte.
func asPlugin() error {
	if os.Getenv(agentAt) != "" {
		return asCaller()
	}
	var b [1]byte
	for {
		if _, err := io.ReadFull(os.Stdin, b[:]); err != nil {
			return nil
		}
		if err := runTrue(os.Environ(), 0); err != nil {
			return err
		}
		if _, err := os.Stdout.Write(b[:]); err != nil {
			return err
		}
	}
}

func (h *hooks) tracked() ([]row, error) {
	dir, err := os.MkdirTemp("", "cniscope-bench")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file, err := pluginIn(dir)
	if err != nil {
		return nil, err
	}
	env := pluginEnvironment(dir)
	first, command := costs{"exec": {}}, newCosts()
	for range hookRounds {
		round := newCosts()
		if err := h.onePlugin(file, env, first, round); err != nil {
			return nil, err
		}
		command.add(round)
	}
	first["exec"].rounds = first["exec"].single
	return []row{
		first["exec"].row("exec hook, a plugin (wakes the reader)", 0),
		command["exec"].row("exec hook, a plugin's command", 0),
		command["fork"].row("fork hook, a plugin's command", 0),
		command["exit"].row("exit hook, a plugin's command", 0),
	}, nil
}

func (h *hooks) onePlugin(file string, env []string, first, command costs) error {
	p, err := newPlugin(file, env)
	if err != nil {
		return err
	}
	if err := h.sample(first, p.Start); err != nil {
		return err
	}
	for range hookExecs {
		if err := h.sample(command, func() error { return p.does(0) }); err != nil {
			return err
		}
	}
	return p.end()
}

// plugin is this program as a plugin or a caller.
type plugin struct {
	*exec.Cmd
	in  io.WriteCloser
	out io.Reader
}

func newPlugin(file string, env []string) (p *plugin, err error) {
	p = &plugin{Cmd: exec.Command(file)}
	p.Env, p.Stderr = env, os.Stderr
	if p.in, err = p.StdinPipe(); err == nil {
		p.out, err = p.StdoutPipe()
	}
	return p, err
}

func (p *plugin) does(what byte) error {
	b := [1]byte{what}
	_, err := p.in.Write(b[:])
	if err == nil {
		_, err = io.ReadFull(p.out, b[:])
	}
	if err != nil {
		return fmt.Errorf("the plugin: %w", err)
	}
	return nil
}

func (p *plugin) end() error { return errors.Join(p.in.Close(), p.Wait()) }

const pluginName = "bench-plugin"

func pluginIn(dir string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, pluginName)
	return file, os.Symlink(self, file)
}

func pluginEnvironment(dir string) []string {
	return append(environment(35, 2560),
		"CNI_COMMAND=ADD", "CNI_CONTAINERID=bench", "CNI_IFNAME=eth0", "CNI_NETNS=/run/netns/bench", "CNI_PATH="+dir)
}
