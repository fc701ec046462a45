//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// program is cniscope itself, and options what it is run with.
const (
	cniscope = "/cniscope"
	exported = "/tmp/spans.json"
	options  = "[nri]\nenabled = false\n[export.file]\npath = \"" + exported + "\"\n[state]\ndir = \"/tmp/run\"\n"
)

// log is what a program writes, while it runs.
type log struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(b)
}

func (l *log) says(what string) bool { return strings.Contains(l.String(), what) }

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// wholeProgram runs cniscope for the time of one call, and looks for its span.
func wholeProgram(s *scene) error {
	toml := options
	if byConnector(s.options) {
		toml += "[probe]\nsource = \"connector\"\n"
	}
	if err := os.WriteFile("/tmp/cniscope.toml", []byte(toml), 0o600); err != nil {
		return err
	}
	var said log
	run := exec.Command(cniscope, "run", "--config", "/tmp/cniscope.toml")
	run.Stderr, run.Env = &said, []string{"NODE_NAME=vm"}
	if err := run.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- run.Wait() }()
	for !said.says("observing CNI calls") {
		select {
		case err := <-ended:
			return fmt.Errorf("it ended: %w: %s", err, said.String())
		case <-time.After(20 * time.Millisecond):
		}
	}
	if _, err := finish(command("failing")); err != nil {
		return err
	}
	_ = run.Process.Signal(unix.SIGTERM)
	if err := <-ended; err != nil {
		return fmt.Errorf("%w: %s", err, said.String())
	}
	spans, err := os.ReadFile(exported)
	if err == nil && (!bytes.Contains(spans, []byte(`"failing ADD"`)) || !said.says("CNI call failed")) {
		err = fmt.Errorf("exported %.500q, said %s", spans, said.String())
	}
	return err
}

// doctor says of a kernel that is locked down that it is, and of no other.
func doctor(s *scene) error {
	said, _ := exec.Command(cniscope, "doctor").CombinedOutput() // no runtime is here: it fails
	locked := strings.Contains(s.options, "lockdown=confidentiality")
	if strings.Contains(string(said), "the kernel is locked down") != locked {
		return fmt.Errorf("locked down is %v: %s", locked, said)
	}
	return nil
}
