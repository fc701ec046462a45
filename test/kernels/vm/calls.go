//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/event"
)

const configured = `{"cniVersion":"1.0.0","name":"pods","type":"any","ipam":{"type":"delegate"}}`

// called is a called plugin from its caller's view.
type called struct {
	pid         int
	says        self
	state       *syscall.WaitStatus
	usage       *syscall.Rusage
	began, over int64 // monotonic nanoseconds
}

// identity is every call's environment; containers are named after plugins.
func identity(plugin string) event.Call {
	return event.Call{
		Command: "ADD", ContainerID: plugin, NetNS: "/run/netns/" + plugin, IfName: "eth0",
		Pod:   event.Pod{Namespace: "shop", Name: "web-0", UID: "u-1"},
		Trace: event.TraceContext{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
	}
}

// command calls a plugin like libcni.
func command(plugin string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(pluginFolder, plugin))
	id := identity(plugin)
	cmd.Env = []string{
		"PATH=/bin", "CNI_IFNAME=" + id.IfName, "CNI_PATH=/nowhere:" + pluginFolder,
		"CNI_ARGS=K8S_POD_NAME=web-0;K8S_POD_NAMESPACE=shop;IgnoreUnknown=1;K8S_POD_UID=u-1",
		"CNI_CONTAINERID=" + id.ContainerID, "CNI_NETNS=" + id.NetNS, "CNI_COMMAND=" + id.Command,
		"TRACEPARENT=" + id.Trace.Parent,
	}
	return cmd
}

// hang calls a plugin that runs until its standard input ends.
func hang() (plugin *exec.Cmd, stdin io.Closer, err error) {
	plugin = command("hung")
	if stdin, err = plugin.StdinPipe(); err == nil {
		err = plugin.Start()
	}
	return plugin, stdin, err
}

// finish runs cmd; it fails only if cmd could not run.
func finish(cmd *exec.Cmd) (*called, error) {
	var out bytes.Buffer
	cmd.Stdin, cmd.Stdout = strings.NewReader(configured), &out
	c := &called{began: clock.Monotonic()}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	_ = cmd.Wait()
	c.over = clock.Monotonic()
	return c, c.ended(cmd, out.Bytes())
}

func (c *called) ended(cmd *exec.Cmd, out []byte) error {
	c.pid = cmd.Process.Pid
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	usage, ok2 := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok || !ok2 {
		return fmt.Errorf("%s: no status", cmd.Path)
	}
	c.state, c.usage = &status, usage
	if len(out) > 0 {
		return json.Unmarshal(out, &c.says)
	}
	return nil
}

// callInside calls the plugins with observed system calls, some after one that makes init a server.
func callInside(all map[string]*called) error {
	for _, plugin := range slices.Sorted(maps.Keys(insiders)) {
		cmd := command(plugin)
		cmd.Stderr = os.Stderr
		c, err := finish(cmd)
		if err != nil {
			return fmt.Errorf("calling %s: %w", plugin, err)
		}
		all[plugin] = c
	}
	return nil
}

func callAll() (map[string]*called, error) {
	all := map[string]*called{}
	for plugin, change := range map[string]func(*exec.Cmd){
		"tree":     nil,
		"failing":  nil,
		"killed":   nil,
		"replaced": nil,
		"busy":     nil,
		"script":   nil,
		"inside": func(cmd *exec.Cmd) {
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWPID}
		},
		"crowded": func(cmd *exec.Cmd) {
			var many []string
			for i := range 900 {
				many = append(many, fmt.Sprintf("SERVICE_%d_PORT=tcp://192.0.2.1:80 %0100d", i, i))
			}
			cmd.Env = append(many, cmd.Env...)
		},
		"tenant": func(cmd *exec.Cmd) {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		},
	} {
		cmd := command(plugin)
		if change != nil {
			change(cmd)
		}
		c, err := finish(cmd)
		if err != nil {
			return nil, fmt.Errorf("calling %s: %w", plugin, err)
		}
		all[plugin] = c
	}
	return all, callInside(all)
}
