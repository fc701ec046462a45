//go:build linux

// Package e2e holds the end-to-end tests: cniscope with a real containerd, CNI plugins and Jaeger.
package e2e

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

var program string

func TestMain(m *testing.M) {
	if d := os.Getenv(flooding); d != "" {
		if err := floodFor(d); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(scope.Main(m, &program))
}

type stage struct {
	*testing.T
	ctx      context.Context
	rig      *rig.Rig
	jaeger   *rig.Jaeger
	endpoint string
	scope    *scope.Scope
}

// patient is for tests that need NRI: a busy machine starts sandboxes slowly after their network.
// whole prevents summaries in bursts.
const (
	quick   = "[limits]\nsettle = \"500ms\"\n"
	patient = "[limits]\nsettle = \"5s\"\n"
	whole   = "[sampling]\nper_second = 0\n"
)

// set builds the stage; with tracing, containerd also exports to Jaeger.
func set(t *testing.T, tracing bool, ro rig.Options, so scope.Options) *stage {
	t.Helper()
	s := setRig(t, tracing, ro)
	s.startScope(so)
	return s
}

func setRig(t *testing.T, tracing bool, ro rig.Options) *stage {
	t.Helper()
	s := setJaeger(t)
	if tracing {
		ro.OTLP = s.jaeger.OTLP()
	}
	s.startRig(ro)
	return s
}

func setJaeger(t *testing.T) *stage {
	t.Helper()
	s := &stage{T: t, ctx: harness.Context(t)}
	s.jaeger = scope.Jaeger(s.ctx, t)
	s.endpoint = s.jaeger.OTLP()
	return s
}

func (s *stage) startRig(ro rig.Options) {
	s.Helper()
	s.rig = scope.Rig(s.ctx, s, ro)
}

func (s *stage) startScope(so scope.Options) {
	s.Helper()
	so.Program = program
	if !strings.Contains(so.TOML, "[limits]") {
		so.TOML = quick + so.TOML
	}
	if !strings.Contains(so.TOML, "[sampling]") {
		so.TOML = whole + so.TOML
	}
	so.TOML = fmt.Sprintf("[export.otlp]\nendpoint = %q\n", s.endpoint) + so.TOML
	s.scope = scope.Observe(s.ctx, s, s.rig, so)
}

func (s *stage) pod(o rig.PodOptions) string {
	s.Helper()
	return harness.Must(s.rig.RunPod(s.ctx, o))(s.T)
}

func (s *stage) sub(t *testing.T) *stage {
	sub := *s
	sub.T = t
	return &sub
}

// network replaces the network and waits until containerd and cniscope use it. Names are unique.
func (s *stage) network(name string, behind ...string) {
	s.Helper()
	chain := []rig.Plugin{rig.Bridge()}
	for _, plugin := range behind {
		chain = append(chain, rig.Test(plugin))
	}
	harness.Check(s.T, s.rig.SetNetworks(s.ctx, rig.Network{Name: name, Plugins: chain}))
	harness.Eventually(s, func() error {
		for line := range strings.Lines(s.scope.LogText()) {
			if strings.Contains(line, "CNI networks") && strings.Contains(line, name) {
				return nil
			}
		}
		return fmt.Errorf("cniscope has not read network %s", name)
	})
}

func (s *stage) podSpans(pod string, calls ...string) (all []*span) {
	s.Helper()
	s.spans("cniscope", func(found []*span) error {
		all = of(found, pod)
		for _, call := range calls {
			if n := len(only(all, "call", call)); n < 2 {
				return fmt.Errorf("pod %s has %d spans %s", pod, n, call)
			}
		}
		return nil
	})
	return all
}

func one(t *testing.T, all []*span, kind, name, ifname string) *span {
	t.Helper()
	found := slices.DeleteFunc(only(all, kind, name), func(x *span) bool { return ifname != "" && x.text("cni.ifname") != ifname })
	if len(found) != 1 {
		t.Fatalf("%d spans %s %s", len(found), name, ifname)
	}
	return found[0]
}

type span struct {
	*tracepb.Span
	resource map[string]*commonpb.AnyValue
	attrs    map[string]*commonpb.AnyValue
}

func (s *span) text(key string) string {
	return cmp.Or(s.attrs[key], s.resource[key]).GetStringValue()
}

func (s *span) texts(key string) (all []string) {
	for _, v := range s.attrs[key].GetArrayValue().GetValues() {
		all = append(all, v.GetStringValue())
	}
	return all
}
func (s *span) id() string     { return hex.EncodeToString(s.SpanId) }
func (s *span) parent() string { return hex.EncodeToString(s.ParentSpanId) }
func (s *span) trace() string  { return hex.EncodeToString(s.TraceId) }
func (s *span) kind() string   { return s.text("cniscope.kind") }
func (s *span) plugin() bool   { return s.kind() == "run" || s.kind() == "delegate" }
func (s *span) failed() bool {
	return s.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR
}
func (s *span) pid() int            { return int(s.attrs["process.pid"].GetIntValue()) }
func (s *span) took() time.Duration { return time.Duration(s.EndTimeUnixNano - s.StartTimeUnixNano) }

func flatten(all []*tracepb.ResourceSpans) (spans []*span) {
	for _, rs := range all {
		resource := attributes(rs.GetResource().GetAttributes())
		for _, ss := range rs.ScopeSpans {
			for _, s := range ss.Spans {
				spans = append(spans, &span{s, resource, attributes(s.Attributes)})
			}
		}
	}
	return spans
}

func attributes(kvs []*commonpb.KeyValue) map[string]*commonpb.AnyValue {
	m := map[string]*commonpb.AnyValue{}
	for _, kv := range kvs {
		m[kv.Key] = kv.Value
	}
	return m
}

func (s *stage) spans(service string, ready func([]*span) error) []*span {
	s.Helper()
	var found []*span
	harness.Eventually(s, func() error {
		all, err := s.jaeger.FindTraces(s.ctx, rig.Query{Service: service})
		if err != nil {
			return err
		}
		found = slices.DeleteFunc(flatten(all), func(x *span) bool {
			return x.resource["service.name"].GetStringValue() != service
		})
		return ready(found)
	})
	return found
}

func (s *stage) calls(command string, n int) []*span {
	s.Helper()
	return s.spans("cniscope", func(all []*span) error {
		if got := len(only(all, "call", "CNI "+command)); got < n {
			return fmt.Errorf("%d of %d CNI %s calls arrived", got, n, command)
		}
		return nil
	})
}

func only(all []*span, kind, name string) []*span {
	return slices.DeleteFunc(slices.Clone(all), func(x *span) bool {
		is := x.kind() == kind || kind == "plugin" && x.plugin() // a run or a delegated plugin
		return !is || name != "" && x.Name != name
	})
}

func of(all []*span, pod string) []*span {
	return slices.DeleteFunc(slices.Clone(all), func(x *span) bool { return x.text("k8s.pod.name") != pod })
}
