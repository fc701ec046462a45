//go:build linux

// Package chart runs helm on the chart in configs/helm/cniscope, for tests.
package chart

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

// Helm runs the helm program on the chart.
type Helm struct {
	program string
	Chart   string
	Env     []string
}

// New finds helm, or skips the test if helm is not built.
func New(t testing.TB) *Helm {
	t.Helper()
	bin, err := rig.Tools("helm")
	if errors.Is(err, rig.ErrNoTools) {
		t.Skip("helm is not built: run `make tools-helm` first")
	}
	harness.Check(t, err)
	home := t.TempDir()
	return &Helm{
		program: filepath.Join(bin, "helm"),
		Chart:   filepath.Join(filepath.Dir(bin), "..", "..", "configs", "helm", "cniscope"),
		// The user's configuration, plugins and cluster must not reach the test.
		Env: []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "HELM_CACHE_HOME=" + home, "HELM_CONFIG_HOME=" + home, "HELM_DATA_HOME=" + home, "KUBECONFIG=/dev/null"},
	}
}

// Run runs helm and returns its standard output. An error holds its standard error.
func (h *Helm) Run(ctx context.Context, arguments ...string) (string, error) {
	cmd := exec.CommandContext(ctx, h.program, arguments...)
	cmd.Env = h.Env
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return string(out), fmt.Errorf("helm %s: %w\n%s", strings.Join(arguments, " "), err, complaint.String())
	}
	return string(out), nil
}

// Template renders the chart as a release in a namespace. More arguments are such as `--set`, `profile=gke`.
func (h *Helm) Template(ctx context.Context, release, namespace string, arguments ...string) (string, error) {
	return h.Run(ctx, append([]string{"template", release, h.Chart, "--namespace", namespace}, arguments...)...)
}

// Profiles returns the valid values of profile.
func (h *Helm) Profiles(t testing.TB) (names []string) {
	t.Helper()
	files := harness.Must(filepath.Glob(filepath.Join(h.Chart, "profiles", "*.yaml")))(t)
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), ".yaml"))
	}
	if len(names) == 0 {
		t.Fatal("the chart has no profiles")
	}
	return names
}

// Object is an object of a rendering.
type Object map[string]any

// Objects parses a rendering.
func Objects(rendering string) (all []Object, err error) {
	for decoder := yaml.NewDecoder(strings.NewReader(rendering)); ; {
		var o Object
		switch err := decoder.Decode(&o); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("the rendering is no YAML: %w\n%s", err, rendering)
		case o != nil:
			all = append(all, o)
		}
	}
}

// At follows keys, and numbers in lists. It returns nil where the path does not exist.
func (o Object) At(path ...any) any {
	var at any = map[string]any(o)
	for _, step := range path {
		switch key := step.(type) {
		case string:
			at = object(at)[key]
		case int:
			list, _ := at.([]any)
			if key >= len(list) {
				return nil
			}
			at = list[key]
		}
	}
	return at
}

// In returns the object at a path.
func (o Object) In(path ...any) Object { return object(o.At(path...)) }

func object(v any) Object {
	if o, ok := v.(Object); ok {
		return o
	}
	m, _ := v.(map[string]any)
	return m
}

// List returns the objects of the list at a path.
func (o Object) List(path ...any) (all []Object) {
	list, _ := o.At(path...).([]any)
	for _, v := range list {
		all = append(all, object(v))
	}
	return all
}

// Text returns the string at a path, or "".
func (o Object) Text(path ...any) string {
	s, _ := o.At(path...).(string)
	return s
}

// Of returns the objects of a kind.
func Of(all []Object, kind string) (some []Object) {
	for _, o := range all {
		if o.Text("kind") == kind {
			some = append(some, o)
		}
	}
	return some
}
