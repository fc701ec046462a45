//go:build linux

// Package scenarios reproduces causes of slow pod networks with real pods: for each the expected trace, and a control
// without it.
package scenarios

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/containerd/nri/pkg/api"
	"golang.org/x/sync/errgroup"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
	"github.com/cniscope/cniscope/test/spans"
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
	case name == vsctl, name == ovsdb:
		if err := openVSwitch(name); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	case name == nriActor, os.Getenv(api.PluginNameEnvVar) != "":
		os.Exit(actNRI())
	case name == "whereabouts":
		os.Exit(lease())
	case slices.Contains(reporters(), name):
		os.Exit(reports())
	}
	os.Exit(scope.Main(m, &program))
}

type scene struct {
	*testing.T
	ctx   context.Context
	rig   *rig.Rig
	scope *scope.Scope
	spans string
	pods  *int // started in all subtests
	// prefix of the pods' names; default "pod".
	prefix string
}

func set(t *testing.T, ro rig.Options, toml string) *scene {
	t.Helper()
	harness.Root(t)
	ctx := harness.Context(t)
	self := harness.Must(os.Executable())(t)
	binary := harness.Must(os.ReadFile(self))(t)
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
	s := &scene{T: t, ctx: ctx, pods: new(int)}
	ro.CRIO = ro.CRIO || os.Getenv("CNISCOPE_TEST_RUNTIME") == "crio" // make test-crio
	s.rig = scope.Rig(ctx, t, ro)
	s.spans = filepath.Join(s.rig.Dir(), "spans.jsonl")
	if !strings.HasPrefix(toml, "[slow]") {
		toml = "[slow]\ncall = \"1m\"\ncommand = \"1m\"\n" + toml
	}
	if !strings.Contains(toml, "[sampling]") {
		toml += "\n[sampling]\nper_second = 0\n"
	}
	s.scope = scope.Observe(ctx, t, s.rig, scope.Options{
		Program: program,
		TOML:    fmt.Sprintf("[export.file]\npath = %q\n[limits]\nsettle = \"2s\"\n", s.spans) + toml,
	})
	return s
}

// in is the scene for a subtest.
func (s *scene) in(t *testing.T) *scene {
	in := *s
	in.T = t
	return &in
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

func (s *scene) add(o rig.PodOptions, fails bool) *call {
	s.Helper()
	*s.pods++
	o.Namespace, o.Name = "shop", fmt.Sprintf("%s-%d", cmp.Or(s.prefix, "pod"), *s.pods)
	id, err := s.rig.RunPod(s.ctx, o)
	if fails != (err != nil) {
		s.Fatalf("pod %s: %v", o.Name, err)
	}
	if err == nil { // frees its addresses
		harness.Check(s.T, s.rig.EndPod(s.ctx, id))
	}
	return s.call(o.Name)
}

type span = spans.Span

type call struct{ spans.Call }

func (s *scene) call(pod string) *call {
	s.Helper()
	return &call{spans.Wait(s, s.spans, "ADD", "k8s.pod.name", pod)}
}

func (s *scene) deleted(pod string) *call {
	s.Helper()
	return &call{spans.Wait(s, s.spans, "DEL", "k8s.pod.name", pod)}
}

func (s *scene) crowd(prefix string, pods int) {
	s.Helper()
	var all errgroup.Group
	for i := range pods {
		all.Go(func() error {
			_, err := s.rig.RunPod(s.ctx, rig.PodOptions{Namespace: "shop", Name: fmt.Sprintf("%s-%d", prefix, i)})
			return err
		})
	}
	harness.Check(s, all.Wait())
}
