//go:build linux

// Package doctor tests cniscope doctor on a rig: doctor is silent on a whole node, and names each fault with
// evidence.
package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/doctor"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

var program string

func TestMain(m *testing.M) {
	os.Exit(scope.Main(m, &program))
}

type node struct {
	*testing.T
	ctx  context.Context
	rig  *rig.Rig
	toml string
	// around precedes the program, flags follow it.
	around, flags []string
}

func newNode(t *testing.T, o rig.Options) *node {
	t.Helper()
	harness.Root(t)
	ctx := harness.Context(t)
	r := scope.Rig(ctx, t, o)
	n := &node{T: t, ctx: ctx, rig: r}
	n.toml = fmt.Sprintf("[nri]\nsocket = %q\n[runtime]\nsocket = %q\n[cni]\nconf_dir = %q\n[state]\ndir = %q\n[resource]\nnode = \"rig-node\"\n",
		r.NRISocket(), r.Socket(), r.CNIConfDir(), filepath.Join(r.Dir(), "run"))
	return n
}

func (n *node) command(flags ...string) *exec.Cmd {
	n.Helper()
	config := filepath.Join(filepath.Dir(program), "cniscope.toml") // readable by an ordinary user
	harness.Check(n.T, os.WriteFile(config, []byte(n.toml), 0o644))
	args := slices.Concat(n.around, []string{program, "doctor", "--config", config}, n.flags, flags)
	return exec.CommandContext(n.ctx, args[0], args[1:]...)
}

func (n *node) examine() doctor.Report {
	n.Helper()
	cmd := n.command("--format", "json")
	var out, trouble bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &trouble
	err := cmd.Run()
	var report doctor.Report
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		n.Fatalf("%v\n%s%s", err, out.String(), trouble.String())
	}
	harness.Equal(n, exitCode(n.T, err), report.ExitCode(), "doctor ended with")
	return report
}

func exitCode(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	harness.Check(t, err)
	return 0
}

func of(r doctor.Report, name string) (found []doctor.Finding) {
	for _, f := range r.Findings {
		if f.Check == name {
			found = append(found, f)
		}
	}
	return found
}

func (n *node) finds(name string, level doctor.Level, says ...string) doctor.Finding {
	n.Helper()
	return finds(n.T, n.examine(), name, level, says...)
}

func finds(t *testing.T, r doctor.Report, name string, level doctor.Level, says ...string) doctor.Finding {
	t.Helper()
	found := of(r, name)
	if len(found) != 1 {
		t.Fatalf("%s found %d things, want 1: %+v", name, len(found), found)
	}
	f := found[0]
	if f.Level != level || len(f.Evidence) == 0 || len(f.Remedy) == 0 {
		t.Errorf("want a %s with evidence and remedy: %+v", level, f)
	}
	harness.Says(t, strings.Join(slices.Concat([]string{f.Summary}, f.Evidence, f.Remedy), "\n"), says...)
	return f
}

func (n *node) silent(names ...string) {
	n.Helper()
	silent(n.T, n.examine(), names...)
}

func silent(t *testing.T, r doctor.Report, names ...string) {
	t.Helper()
	for _, name := range names {
		if found := of(r, name); len(found) > 0 || state(r, name) != doctor.OK {
			t.Errorf("%s is not silent: %s, %+v", name, state(r, name), found)
		}
	}
}

func state(r doctor.Report, name string) doctor.State {
	for _, c := range r.Checks {
		if c.Name == name {
			return c.State
		}
	}
	return ""
}

func (n *node) start(name string, command ...string) *exec.Cmd {
	n.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	harness.Check(n.T, cmd.Start())
	n.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	harness.Until(n, "it has become the program", func() bool {
		is, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", cmd.Process.Pid))
		harness.Check(n.T, err)
		return strings.TrimSpace(string(is)) == name
	})
	return cmd
}

func (n *node) run(command ...string) {
	n.Helper()
	if out, err := exec.CommandContext(n.ctx, command[0], command[1:]...).CombinedOutput(); err != nil {
		n.Fatalf("%v: %v\n%s", command, err, out)
	}
}

func (n *node) named(name string) string {
	n.Helper()
	return n.copied("/bin/sleep", name)
}

// built compiles a program.
func built(t *testing.T, file, source string, flags ...string) []byte {
	t.Helper()
	main := filepath.Join(t.TempDir(), "main.go")
	write(t, main, source)
	build := exec.Command("go", slices.Concat([]string{"build", "-o", file}, flags, []string{main})...)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return harness.Must(os.ReadFile(file))(t)
}
