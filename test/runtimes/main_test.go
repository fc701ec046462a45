//go:build linux

package runtimes

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
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

// whole checks a call's attributes and what it ran.
func (n *node) whole(call spans.Call, attributes map[string]string, plugins ...string) {
	n.Helper()
	for key, want := range attributes {
		harness.Equal(n, call.Attrs[key], want, call.Name, key)
	}
	command := strings.TrimPrefix(call.Name, "CNI")
	for _, want := range append(plugins, "run bridge", "run portmap", "delegate host-local", "command iptables") {
		kind, name, _ := strings.Cut(want, " ")
		if kind != "command" {
			name += command
		}
		below := call.Below(kind)
		if !slices.ContainsFunc(below, func(s *spans.Span) bool { return s.Name == name }) {
			n.Errorf("%s: no %s among %d spans of kind %s", call.Name, name, len(below), kind)
		}
	}
}
