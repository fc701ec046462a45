//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
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
		pid, err := syscall.ForkExec("/bin/true", []string{"true"}, &syscall.ProcAttr{Env: os.Environ()})
		if err != nil {
			return err
		}
		if _, err := syscall.Wait4(pid, nil, 0, nil); err != nil {
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
	first := map[string]*cost{"exec": {}}
	command := map[string]*cost{"exec": {}, "fork": {}, "exit": {}}
	for range hookRounds {
		round := map[string]*cost{"exec": {}, "fork": {}, "exit": {}}
		err := h.onePlugin(file, env, first, round)
		if err != nil {
			return nil, err
		}
		for name, c := range round {
			command[name].single = append(command[name].single, c.single...)
			command[name].rounds = append(command[name].rounds, mean(c.single))
		}
	}
	first["exec"].rounds = first["exec"].single
	return []row{
		first["exec"].row("exec hook, a plugin (wakes the reader)", 0),
		command["exec"].row("exec hook, a plugin's command", 0),
		command["fork"].row("fork hook, a plugin's command", 0),
		command["exit"].row("exit hook, a plugin's command", 0),
	}, nil
}

func (h *hooks) onePlugin(file string, env []string, first, command map[string]*cost) error {
	cmd := exec.Command(file)
	cmd.Env, cmd.Stderr = env, os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := h.sample(first, map[string]uint64{"exec": 1}, cmd.Start); err != nil {
		return err
	}
	var b [1]byte
	for range hookExecs {
		err := h.sample(command, map[string]uint64{"exec": 1, "fork": 1, "exit": 1}, func() error {
			if _, err := in.Write(b[:]); err != nil {
				return err
			}
			_, err := io.ReadFull(out, b[:])
			return err
		})
		if err != nil {
			return fmt.Errorf("the plugin: %w", err)
		}
	}
	return errors.Join(in.Close(), cmd.Wait())
}

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
