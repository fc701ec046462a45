//go:build windows

// Standin contains the programs of a Windows node that a test needs and wine lacks. The name of its file selects the
// program.
//
//	antrea.exe a CNI plugin that follows its configuration
//	antrea-agent.exe an agent that plugins call over a named pipe
//	powershell.exe a slow program of that name
//	client.exe a client of the CRI
//	driver.exe the CNI part of a container runtime, with libcni
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	program := strings.TrimSuffix(strings.ToLower(filepath.Base(os.Args[0])), ".exe")
	run, known := map[string]func([]string) error{
		"antrea": plugin, "antrea-agent": agent, "powershell": powershell, "client": client, "driver": driver,
	}[program]
	if !known {
		fmt.Fprintln(os.Stderr, "this is no program:", program)
		os.Exit(2)
	}
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", program, err)
		os.Exit(1)
	}
}

// slow is the duration of powershell.exe, as time.ParseDuration reads it.
const slow = "STANDIN_POWERSHELL"

func powershell([]string) error {
	takes, err := time.ParseDuration(os.Getenv(slow))
	if err != nil {
		takes = 700 * time.Millisecond
	}
	time.Sleep(takes)
	return nil
}
