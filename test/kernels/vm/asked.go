//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/procfs"
)

type listed struct {
	Sandbox string        `json:"sandbox"`
	Age     time.Duration `json:"age_ns"`
}

func (s *stepping) listed(sandbox string) *listed {
	var said struct{ Calls []listed }
	if ask(&said, "ps") != nil {
		return nil
	}
	for _, c := range said.Calls {
		if c.Sandbox == sandbox {
			return &c
		}
	}
	return nil
}

func ask(into any, command ...string) error {
	out, err := exec.Command(cniscope, append(command, "--format", "json", "--config", configFile)...).Output()
	if err == nil {
		err = json.Unmarshal(out, into)
	}
	if err != nil {
		return fmt.Errorf("cniscope %s: %w", strings.Join(command, " "), err)
	}
	return nil
}

func (s *stepping) ages(c *calling) error {
	least := clock.Monotonic() - c.Began[1]
	found := s.listed(c.Sandbox)
	if found == nil {
		return fmt.Errorf("cniscope ps does not list %s", c.Sandbox)
	}
	if most := clock.Monotonic() - c.Began[0]; found.Age < time.Duration(least) || found.Age > time.Duration(most) {
		return fmt.Errorf("cniscope ps says that %s is %v old, not %v to %v", c.Sandbox, found.Age, time.Duration(least), time.Duration(most))
	}
	return nil
}

// reload changes an option and waits until it applies; the nth value differs from the previous.
func (s *stepping) reload(n int) error {
	const done = "options changed"
	before := strings.Count(s.said.String(), done)
	toml := fmt.Sprintf("%s[slow]\ncall = \"%dms\"\n", s.toml, 2001+n)
	if err := os.WriteFile(configFile, []byte(toml), 0o600); err != nil {
		return err
	}
	return s.until("the options are read again", func() bool { return strings.Count(s.said.String(), done) > before })
}

// memory checks that the node history begins in the past and has the last hour.
func (s *stepping) memory() error {
	var top struct {
		Since      time.Time
		Operations int
	}
	if err := ask(&top, "top"); err != nil {
		return err
	}
	if top.Since.After(time.Now()) || top.Operations == 0 {
		return fmt.Errorf("cniscope top says %+v, and it is %v", top, time.Now())
	}
	return nil
}

const resting = 3 * time.Second

func (s *stepping) rests() error {
	before, err := procfs.StatOf(s.Process.Pid)
	if err != nil {
		return err
	}
	began := clock.Monotonic()
	time.Sleep(resting)
	after, err := procfs.StatOf(s.Process.Pid)
	if err != nil {
		return err
	}
	over := time.Duration(clock.Monotonic() - began)
	if used := time.Duration(after.CPU - before.CPU); used > over/2 {
		return fmt.Errorf("it used %v of %v, and had nothing to do", used, over)
	}
	if n := strings.Count(s.said.String(), "\n"); n > linesMax {
		return fmt.Errorf("it wrote %d lines", n)
	}
	return nil
}

// linesMax bounds its log lines: about ten at start and ten per turn.
const linesMax = 300
