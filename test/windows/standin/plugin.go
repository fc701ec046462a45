//go:build windows

package main

import (
	"crypto/sha1" // as antrea does; it protects nothing
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	winio "github.com/Microsoft/go-winio"
	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/version"
)

type configuration struct {
	types.PluginConf
	behaviour
	Pods map[string]behaviour `json:"pods"`
}

type behaviour struct {
	// Powershell: ADD runs powershell.exe, as antrea's plugin did before it had an agent.
	Powershell bool   `json:"powershell"`
	Agent      string `json:"agent"`
	// Hang is a sleep in ADD, Fail the error after it, Exit an exit code without a message.
	Hang string `json:"hang"`
	Fail string `json:"fail"`
	Exit int    `json:"exit"`
}

// seen is how long a plugin lasts at least, so that snapshots of a busy machine contain it.
const seen = time.Second

type request struct {
	Command, Container, Pod, NetNS string
}

func plugin([]string) error {
	skel.PluginMainFuncs(skel.CNIFuncs{
		Add:   func(a *skel.CmdArgs) error { return do("ADD", a) },
		Del:   func(a *skel.CmdArgs) error { return do("DEL", a) },
		Check: func(*skel.CmdArgs) error { return nil },
	}, version.All, "a stand-in for antrea's plugin")
	return nil
}

func do(command string, a *skel.CmdArgs) error {
	var c configuration
	if err := json.Unmarshal(a.StdinData, &c); err != nil {
		return err
	}
	pod := podOf(a.Args)
	b, its := c.Pods[pod]
	if !its {
		b = c.behaviour
	}
	if command == "ADD" {
		if d, err := time.ParseDuration(b.Hang); err == nil {
			time.Sleep(d)
		}
		if b.Exit != 0 {
			os.Exit(b.Exit)
		}
		if b.Fail != "" {
			return types.NewError(types.ErrTryAgainLater, b.Fail, "a stand-in's")
		}
		if b.Powershell {
			if err := getAdapter(adapter(pod, a.ContainerID)); err != nil {
				return err
			}
		}
	}
	if b.Agent != "" {
		if err := call(b.Agent, request{Command: command, Container: a.ContainerID, Pod: pod, NetNS: a.Netns}); err != nil {
			return err
		}
	}
	if command != "ADD" {
		time.Sleep(seen)
		return nil
	}
	inside := 0
	return types.PrintResult(&current.Result{
		CNIVersion: current.ImplementedSpecVersion,
		Interfaces: []*current.Interface{{Name: a.IfName, Sandbox: a.Netns}},
		IPs:        []*current.IPConfig{{Interface: &inside, Address: net.IPNet{IP: net.IPv4(100, 96, 3, 22), Mask: net.CIDRMask(24, 32)}, Gateway: net.IPv4(100, 96, 3, 1)}},
	}, c.CNIVersion)
}

func podOf(args string) string {
	for _, field := range strings.Split(args, ";") {
		if name, is := strings.CutPrefix(field, "K8S_POD_NAME="); is {
			return name
		}
	}
	return ""
}

// adapter returns antrea's name for a pod's adapter (antrea pkg/agent/util/net.go,
// GenerateContainerInterfaceName).
func adapter(pod, container string) string {
	hash := sha1.Sum([]byte(container))
	return fmt.Sprintf("vEthernet (%s-%s)", pod[:min(len(pod), 8)], hex.EncodeToString(hash[:])[:6])
}

// getAdapter queries the adapter as antrea does (pkg/agent/util/powershell/powershell_windows.go).
func getAdapter(name string) error {
	script := fmt.Sprintf(`$ErrorActionPreference="Stop";try {Get-NetAdapter -InterfaceAlias "%s"} catch {Write-Host $_;os.Exit(1)}`, name)
	return exec.Command("powershell.exe", "-NoLogo", "-NoProfile", "-NonInteractive", "-Command", script).Run()
}

func call(pipe string, r request) error {
	patience := 30 * time.Second
	c, err := winio.DialPipe(pipe, &patience)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := json.NewEncoder(c).Encode(r); err != nil {
		return err
	}
	var failed string
	if err := json.NewDecoder(c).Decode(&failed); err != nil {
		return err
	}
	if failed != "" {
		return errors.New(failed)
	}
	return nil
}
