//go:build windows

package main

import (
	"encoding/json"
	"flag"
	"net"
	"os/exec"
	"strings"
	"time"

	winio "github.com/Microsoft/go-winio"
)

// agent runs powershell.exe for a pod's adapter during and after an ADD; flags add nameless ones
// and work after the answer.
func agent(args []string) error {
	flags := flag.NewFlagSet("antrea-agent", flag.ContinueOnError)
	pipe := flags.String("pipe", "", "the pipe to listen on")
	after := flags.Duration("after", 0, "how long after a plugin has its answer powershell.exe is run once more for the pod; 0: not at all")
	blind := flags.Bool("blind", false, "run powershell.exe with nothing of the pod in its command line, too")
	if err := flags.Parse(args); err != nil {
		return err
	}
	l, err := winio.ListenPipe(*pipe, nil)
	if err != nil {
		return err
	}
	// Wine gives the listener's first instance to the first client.
	if c, err := winio.DialPipe(*pipe, nil); err == nil {
		_ = c.Close()
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go answer(c, *after, *blind)
	}
}

func answer(c net.Conn, after time.Duration, blind bool) {
	defer c.Close()
	var r request
	if json.NewDecoder(c).Decode(&r) != nil {
		return
	}
	failed := ""
	if r.Command == "ADD" {
		name := adapter(r.Pod, r.Container)
		if err := getAdapter(name); err != nil {
			failed = err.Error()
		}
		if blind {
			shell := exec.Command("powershell.exe", "-NoExit", "-Command", "-") // commands come from standard input
			shell.Stdin = strings.NewReader("Get-NetAdapter\n")
			_ = shell.Run()
		}
		if after > 0 {
			defer func() { // the plugin closes the connection after the answer
				_, _ = c.Read(make([]byte, 1))
				time.AfterFunc(after, func() { _ = getAdapter(name) })
			}()
		}
	}
	_ = json.NewEncoder(c).Encode(failed)
}
