//go:build linux

package runtimes

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
	"github.com/cniscope/cniscope/test/spans"
)

var program string

func TestMain(m *testing.M) { os.Exit(scope.Main(m, &program)) }

type node struct {
	*testing.T
	ctx   context.Context
	rig   *rig.Rig
	scope *scope.Scope
	spans string
}

func start(t *testing.T, o rig.Options, toml string) *node {
	t.Helper()
	harness.Root(t)
	n := &node{T: t, ctx: harness.Context(t)}
	n.rig = scope.Rig(n.ctx, t, o)
	n.spans = filepath.Join(n.rig.Dir(), "spans.jsonl")
	n.scope = scope.Observe(n.ctx, t, n.rig, scope.Options{
		Program: program,
		TOML:    fmt.Sprintf("[export.file]\npath = %q\n[limits]\nsettle = \"2s\"\n[sampling]\nper_second = 0\n", n.spans) + toml,
	})
	return n
}

func (n node) in(t *testing.T) *node {
	n.T = t
	return &n
}

func (n *node) tool(args ...string) (string, int) {
	n.Helper()
	cmd := exec.CommandContext(n.ctx, program, args...)
	cmd.Env = append(os.Environ(), n.rig.Env())
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		n.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func (n *node) call(pod, command string) spans.Call {
	n.Helper()
	return n.callOf("k8s.pod.name", pod, command)
}

// callOf is call for what has an attribute of that value.
func (n *node) callOf(key, is, command string) spans.Call {
	n.Helper()
	return spans.Wait(n, n.spans, command, key, is)
}

func namesBelow(c spans.Call, kind string) (names []string) {
	for _, s := range c.Below(kind) {
		names = append(names, s.Name)
	}
	return names
}
