//go:build linux

// Package upgrade runs the programs of the release before and those of this tree in turns: on the files that the other
// left, and as kubectl plugin, sidecar and node of one cluster. `make test-upgrade` builds the former.
package upgrade

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

// programs are in a directory.
type programs string

var (
	before = programs(os.Getenv("CNISCOPE_BEFORE"))
	now    programs
)

func TestMain(m *testing.M) {
	var program string
	os.Exit(scope.Main(built{m, &program}, &program))
}

// built builds the remaining programs beside cniscope.
type built struct {
	*testing.M
	program *string
}

func (b built) Run() int {
	if now = programs(filepath.Dir(*b.program)); before != "" && *b.program != "" {
		out, err := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", string(now)+"/",
			"../../plugin/...").CombinedOutput()
		if err != nil {
			fmt.Fprintln(os.Stderr, err, string(out))
			return 1
		}
	}
	return b.M.Run()
}

func (p programs) String() string {
	return map[programs]string{before: "before", now: "now", "": "missing"}[p]
}

func (p programs) file(name string) string { return filepath.Join(string(p), name) }

// node runs a cniscope of either version.
type node struct {
	*testing.T
	ctx   context.Context
	rig   *rig.Rig
	scope *scope.Scope
	toml  string
	pods  int
}

func newNode(t *testing.T) *node {
	t.Helper()
	if before == "" {
		t.Skip("needs the programs of the release before: make test-upgrade")
	}
	n := &node{T: t, ctx: harness.Context(t)}
	n.rig = scope.Rig(n.ctx, t, rig.Options{})
	kept := filepath.Join(n.rig.Dir(), "kept")
	harness.Check(t, os.Mkdir(kept, 0o700))
	// slow.floor and limits.max_hold are options of 0.2 alone.
	n.toml = fmt.Sprintf(`[slow]
call = "1us"
floor = "100ms"
baseline_dir = %[1]q
[sampling]
per_second = 0
[export.otlp]
endpoint = "http://%[2]s"
[export.spool]
dir = "%[1]s/spool"
[limits]
settle = "500ms"
max_hold = "2m"
[control]
read_group = "60947"
`, kept, harness.Address(t))
	return n
}

// observes starts a cniscope, which ends with the returned function.
func (n *node) observes(p programs) (end func()) {
	n.Helper()
	n.scope = scope.Observe(n.ctx, n, n.rig, scope.Options{Program: p.file("cniscope"), TOML: n.toml})
	return func() { harness.Check(n, n.scope.Stop()) }
}

func (n *node) pod() (name string) {
	n.Helper()
	n.pods++
	name = fmt.Sprint("web-", n.pods)
	_, err := n.rig.RunPod(n.ctx, rig.PodOptions{Namespace: "shop", Name: name})
	harness.Check(n, err)
	return name
}

// says runs cniscope's command line until it prints what matches.
func (n *node) says(p programs, arguments string, patterns ...string) {
	n.Helper()
	harness.Eventually(n, func() error {
		words := append(strings.Fields(arguments), "--config", n.scope.Config())
		cmd := exec.CommandContext(n.ctx, p.file("cniscope"), words...)
		out, _ := cmd.CombinedOutput() // the exit code is the process's state
		for _, pattern := range patterns {
			if !regexp.MustCompile(pattern).Match(out) {
				return fmt.Errorf("%s: cniscope %s does not say %q (%s): %s", p, arguments, pattern, cmd.ProcessState, out)
			}
		}
		return nil
	})
}
