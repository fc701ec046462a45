//go:build linux

// Package scenarios reproduces causes of slow pod networks with real pods: for each the expected trace, and a control
// without it.
package scenarios

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
	"github.com/cniscope/cniscope/test/standin"
)

var program string // the cniscope under test

func TestMain(m *testing.M) {
	if code, is := standin.Main(filepath.Base(os.Args[0])); is {
		os.Exit(code)
	}
	switch name := filepath.Base(os.Args[0]); {
	case os.Getenv("CNI_COMMAND") == "VERSION": // CRI-O requests it first
		fmt.Println(`{"cniVersion":"1.0.0","supportedVersions":["0.4.0","1.0.0"]}`)
		os.Exit(0)
	case acts[name] != nil:
		os.Exit(play(acts[name]))
	case name == "remote":
		os.Exit(remote())
	case name == "agentd":
		os.Exit(serveAgent())
	case name == "whereabouts":
		os.Exit(lease())
	}
	os.Exit(scope.Main(m, &program))
}

type scene struct {
	*testing.T
	ctx   context.Context
	rig   *rig.Rig
	scope *scope.Scope
	spans string
	pods  int
	// prefix of the pods' names; default "pod".
	prefix string
}

// set builds the scene, with every act in the CNI directory.
func set(t *testing.T, ro rig.Options, toml string) *scene {
	t.Helper()
	harness.Root(t)
	ctx := harness.Context(t)
	self, err := os.Executable()
	harness.Check(t, err)
	binary, err := os.ReadFile(self)
	harness.Check(t, err)
	if ro.Plugins == nil {
		ro.Plugins = map[string][]byte{}
	}
	ro.Plugins["remote"], ro.Plugins["whereabouts"] = binary, binary
	for name := range acts {
		ro.Plugins[name] = binary
	}
	for _, name := range standin.Programs() {
		ro.Plugins[name] = binary
	}
	s := &scene{T: t, ctx: ctx}
	ro.CRIO = ro.CRIO || os.Getenv("CNISCOPE_TEST_RUNTIME") == "crio" // make test-crio
	s.rig = scope.Rig(ctx, t, ro)
	s.spans = filepath.Join(s.rig.Dir(), "spans.jsonl")
	if !strings.HasPrefix(toml, "[slow]") {
		toml = "[slow]\ncall = \"1m\"\ncommand = \"1m\"\n" + toml
	}
	s.scope = scope.Observe(ctx, t, s.rig, scope.Options{
		Program: program,
		TOML:    fmt.Sprintf("[export.file]\npath = %q\n[limits]\nsettle = \"2s\"\n[sampling]\nper_second = 0\n", s.spans) + toml,
	})
	return s
}

func (s *scene) network(name string, chain ...rig.Plugin) rig.Net {
	s.Helper()
	harness.Check(s.T, s.rig.SetNetworks(s.ctx, rig.Network{Name: name, Plugins: chain}))
	harness.Eventually(s, func() error {
		for line := range strings.Lines(s.scope.LogText()) {
			if strings.Contains(line, "CNI networks") && slices.Contains(strings.Fields(line), "networks="+name) {
				return nil
			}
		}
		return fmt.Errorf("cniscope has not read network %s", name)
	})
	return s.rig.Networks()[0]
}

// add runs a pod and returns its ADD on eth0. fails expects a failure.
func (s *scene) add(o rig.PodOptions, fails bool) *call {
	s.Helper()
	s.pods++
	o.Namespace, o.Name = "shop", fmt.Sprintf("%s-%d", cmp.Or(s.prefix, "pod"), s.pods)
	id, err := s.rig.RunPod(s.ctx, o)
	if fails != (err != nil) {
		s.Fatalf("pod %s: %v", o.Name, err)
	}
	if err == nil { // frees its addresses
		harness.Check(s.T, s.rig.StopPod(s.ctx, id))
		harness.Check(s.T, s.rig.RemovePod(s.ctx, id))
	}
	return s.call(o.Name)
}

func (s *scene) call(pod string) (found *call) {
	s.Helper()
	harness.Eventually(s, func() error {
		all, err := s.read()
		if err != nil {
			return err
		}
		for _, x := range all {
			if x.Name == "CNI ADD" && x.attrs["k8s.pod.name"] == pod && x.attrs["cni.ifname"] == "eth0" {
				found = &call{span: x, all: all}
				return nil
			}
		}
		return fmt.Errorf("no CNI ADD of %s among %d spans", pod, len(all))
	})
	return found
}

// span is one span of the file, with attributes as text.
type span struct {
	Name, SpanID, ParentSpanID string
	StartTimeUnixNano          string
	EndTimeUnixNano            string
	Status                     struct{ Message string }
	TraceID                    string
	Attributes                 []attribute
	Events                     []spanEvent
	Links                      []struct {
		TraceID, SpanID string
		Attributes      []attribute
	}

	attrs map[string]string
}

type spanEvent struct {
	Name       string
	Attributes []attribute
}

type attribute struct {
	Key   string
	Value map[string]json.RawMessage
}

func (a attribute) text() string {
	for kind, raw := range a.Value {
		var text string
		if kind == "stringValue" && json.Unmarshal(raw, &text) == nil {
			return text
		}
		return strings.Trim(string(raw), `"`)
	}
	return ""
}

func texts(attributes []attribute) map[string]string {
	m := map[string]string{}
	for _, a := range attributes {
		m[a.Key] = a.text()
	}
	return m
}

// ms is an attribute in milliseconds.
func (x *span) ms(key string) float64 {
	f, _ := strconv.ParseFloat(x.attrs[key], 64)
	return f
}

// start and end are in nanoseconds since 1970.
func (x *span) start() int64 { return nanoseconds(x.StartTimeUnixNano) }
func (x *span) end() int64   { return nanoseconds(x.EndTimeUnixNano) }

func nanoseconds(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

func (x *span) took() float64 { return float64(x.end()-x.start()) / 1e6 }

func (s *scene) read() (all []*span, err error) {
	file, err := os.Open(s.spans)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return all, nil
		}
		var request struct {
			ResourceSpans []struct {
				Resource   struct{ Attributes []attribute }
				ScopeSpans []struct{ Spans []*span }
			}
		}
		if err := json.Unmarshal(line, &request); err != nil {
			return nil, err
		}
		for _, rs := range request.ResourceSpans {
			for _, ss := range rs.ScopeSpans {
				for _, x := range ss.Spans {
					x.attrs = texts(slices.Concat(rs.Resource.Attributes, x.Attributes)) // the pod is on the resource
					all = append(all, x)
				}
			}
		}
	}
}

type call struct {
	*span
	all []*span
}

func (c *call) below(kinds ...string) (found []*span) {
	in := map[string]bool{c.SpanID: true}
	for _, x := range c.all { // parents precede children
		if in[x.ParentSpanID] {
			in[x.SpanID] = true
			if slices.Contains(kinds, x.attrs["cniscope.kind"]) {
				found = append(found, x)
			}
		}
	}
	return found
}
