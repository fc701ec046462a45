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

	"github.com/cniscope/cniscope/pkg/clock"
)

const (
	cniscope   = "/cniscope"
	exported   = "/tmp/spans.json"
	configFile = "/tmp/cniscope.toml"
	options    = "[nri]\nenabled = false\n[export.file]\npath = \"" + exported + "\"\n[state]\ndir = \"/tmp/run\"\n"
)

const connected = "[probe]\nsource = \"connector\"\n"

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

func wholeProgram(s *scene) error {
	toml := ""
	if byConnector(s.options) {
		toml = connected
	}
	run, err := startCniscope(toml)
	if err != nil {
		return err
	}
	if _, err := finish(command("failing")); err != nil {
		return err
	}
	if err := run.stop(); err != nil {
		return err
	}
	spans, err := os.ReadFile(exported)
	if err == nil && (!bytes.Contains(spans, []byte(`"failing ADD"`)) || !run.said.says("CNI call failed")) {
		err = fmt.Errorf("exported %.500q, said %s", spans, run.said.String())
	}
	return err
}

type running struct {
	*exec.Cmd
	said  log
	ended chan error
}

func startCniscope(more string) (*running, error) { return startProgram(cniscope, options+more) }

func startProgram(name, toml string) (*running, error) {
	if err := os.WriteFile(configFile, []byte(toml), 0o600); err != nil {
		return nil, err
	}
	r := &running{Cmd: exec.Command(name, "run", "--config", configFile), ended: make(chan error, 1)}
	r.Stderr, r.Env = &r.said, []string{"NODE_NAME=vm", "HOME=/tmp"}
	if err := r.Start(); err != nil {
		return nil, err
	}
	go func() { r.ended <- r.Wait() }()
	return r, r.observed(1)
}

// observed waits until cniscope observes calls for the nth time.
func (r *running) observed(n int) error {
	return r.until("it observes", func() bool { return strings.Count(r.said.String(), `msg="observing `) >= n })
}

func (r *running) until(what string, is func() bool) error {
	for began := clock.Monotonic(); !is(); time.Sleep(20 * time.Millisecond) {
		select {
		case err := <-r.ended:
			r.ended <- err
			return fmt.Errorf("until %s: cniscope ended: %w: %s", what, err, r.said.String())
		default:
		}
		if clock.Monotonic()-began > int64(patience/3) {
			return fmt.Errorf("until %s: %v were not enough", what, patience/3)
		}
	}
	return nil
}

func (r *running) stop() error {
	_ = r.Process.Signal(unix.SIGTERM)
	if err := <-r.ended; err != nil {
		return fmt.Errorf("%w: %s", err, r.said.String())
	}
	return nil
}

// doctor reports lockdown only for a locked-down kernel.
func doctor(s *scene) error {
	said, _ := exec.Command(cniscope, "doctor").CombinedOutput() // fails without a runtime
	locked := strings.Contains(s.options, "lockdown=confidentiality")
	if strings.Contains(string(said), "kernel lockdown hides kernel memory") != locked {
		return fmt.Errorf("locked down is %v: %s", locked, said)
	}
	return nil
}
