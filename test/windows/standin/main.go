//go:build windows

// Standin is the programs of a Windows node that a test needs and wine does not have, in one: which of them
// it is says the name of its file.
//
//	antrea.exe        a CNI plugin, which does what its configuration says
//	antrea-agent.exe  an agent, which plugins call over a named pipe
//	powershell.exe    a program of that name, which takes its time
//	client.exe        a client of the container runtime's CRI
//	driver.exe        a container runtime's part that runs CNI plugins, with libcni
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

// slow is how long powershell.exe takes, as time.ParseDuration reads it.
const slow = "STANDIN_POWERSHELL"

func powershell([]string) error {
	takes, err := time.ParseDuration(os.Getenv(slow))
	if err != nil {
		takes = 700 * time.Millisecond
	}
	time.Sleep(takes)
	return nil
}
