//go:build linux

package runtimes

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

var program string

func TestMain(m *testing.M) { os.Exit(scope.Main(m, &program)) }

// node is a rig and a cniscope that writes its spans to a file.
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

func (n *node) read() (all []*otlp.Span, err error) {
	text, err := os.ReadFile(n.spans)
	if err != nil {
		return nil, err
	}
	whole := text[:bytes.LastIndexByte(text, '\n')+1] // the last line may be incomplete
	lines := bufio.NewScanner(bytes.NewReader(whole))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var request collector.ExportTraceServiceRequest
		if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(lines.Bytes(), &request); err != nil {
			return nil, err
		}
		for _, r := range request.ResourceSpans {
			for _, s := range r.ScopeSpans {
				for _, span := range s.Spans { // the pod is a resource attribute
					span.Attributes = slices.Concat(r.Resource.Attributes, span.Attributes)
				}
				all = append(all, s.Spans...)
			}
		}
	}
	return all, lines.Err()
}

func (n *node) call(pod, command string) (found *otlp.Span, below []*otlp.Span) {
	n.Helper()
	return n.callOf("k8s.pod.name", pod, command)
}

func (n *node) callOf(key, is, command string) (found *otlp.Span, below []*otlp.Span) {
	n.Helper()
	harness.Eventually(n, func() error {
		all, err := n.read()
		if err != nil {
			return err
		}
		for _, s := range all {
			if s.Name == "CNI "+command && value(s, key) == is && value(s, "cni.ifname") == "eth0" {
				found, below = s, under(s, all)
				return nil
			}
		}
		return fmt.Errorf("no CNI %s of %s among %d spans", command, is, len(all))
	})
	return found, below
}

func under(top *otlp.Span, all []*otlp.Span) (below []*otlp.Span) {
	in := map[string]bool{string(top.SpanId): true}
	for _, s := range all { // parents precede children
		if in[string(s.ParentSpanId)] {
			in[string(s.SpanId)] = true
			below = append(below, s)
		}
	}
	return below
}

func namesOf(spans []*otlp.Span, kind string) (names []string) {
	for _, s := range spans {
		if value(s, "cniscope.kind") == kind {
			names = append(names, s.Name)
		}
	}
	return names
}

func value(s *otlp.Span, key string) string {
	for _, a := range s.Attributes {
		if a.Key != key {
			continue
		}
		switch v := a.Value.Value.(type) {
		case *common.AnyValue_StringValue:
			return v.StringValue
		case *common.AnyValue_IntValue:
			return strconv.FormatInt(v.IntValue, 10)
		case *common.AnyValue_DoubleValue:
			return strconv.FormatFloat(v.DoubleValue, 'f', -1, 64)
		case *common.AnyValue_BoolValue:
			return strconv.FormatBool(v.BoolValue)
		}
	}
	return ""
}
