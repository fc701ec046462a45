package config

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

// A former name gives a warning; its value applies if its form is unchanged and the new option is not set.
func TestFormerNames(t *testing.T) {
	for text, want := range map[string]string{
		"[containerd]\naddress = \"/run/c.sock\"\n":     `:2:1: containerd.address: is now called runtime.socket; write socket = … in [runtime]`,
		"[run]\ndir = \"/run/c.sock\"\n":                `:2:1: run.dir: is now called state.dir; write dir = … in [state]`,
		"limits.spans = 77\n":                           `:1:8: limits.spans: is now called limits.images; write images = … in [limits]`,
		"limits.images = 77\nlimits.spans = 99\n":       `:2:8: limits.spans: is now called limits.images`,
		"[[agent]]\ncommand = \"antrea-agent\"\n":       `:1:3: agent: is now called probe.agents and written otherwise: it has no effect`,
		"sampling.annotations = true\n":                 `:1:10: sampling.annotations: is now called sampling.annotation_namespaces`,
		"[limits]\nsettle = \"1s\"\nmax_hold = \"9s\"":  `:3:1: limits.max_hold: has no effect any more: it is always 10m; remove it`,
		"slow.floor = 3\n":                              `:1:6: slow.floor: has no effect any more: it is always 100ms; remove it`,
		"export.file.max_bytes = \"1MiB\"\n":            `:1:13: export.file.max_bytes: has no effect any more: it is always 100MiB; remove it`,
		"[containerd]\naddress = \"/run/c.sock\"\nx=1":  "",
		"[run]\ndirr = \"/run/c\"\n":                    "",
		"[containerd]\naddress = \"c.sock\"\n":          "",
		"[runtime]\nsocket = \"/run/containerd/c.s\"\n": "",
	} {
		file := filepath.Join(t.TempDir(), "f.toml")
		harness.Check(t, os.WriteFile(file, []byte(text), 0o600))
		source := Source{Base: Default(), Path: file}
		o, err := source.Load()
		if want == "" {
			harness.Equal(t, (err == nil), strings.Contains(text, "[runtime]"), text, err)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		warnings := source.Warnings(t.Context(), o)
		if len(warnings) != 1 || !strings.HasPrefix(warnings[0].Error(), file+want) {
			t.Errorf("%s: %v, want %s", text, warnings, want)
		}
		switch {
		case strings.Contains(text, "/run/c.sock") && o.Runtime.Socket != "/run/c.sock" && o.State.Dir != "/run/c.sock",
			strings.Contains(text, "77") && o.Limits.Images != 77,
			o.Limits.MaxHold != Default().Limits.MaxHold, o.Slow.Floor != Default().Slow.Floor, o.Export.File != Default().Export.File:
			t.Errorf("%s: %+v %+v %+v", text, o.Runtime, o.Limits, o.Export.File)
		}
	}
}

// A former name expires after two minor versions.
func TestFormerNamesEnd(t *testing.T) {
	changes := harness.Must(os.ReadFile("../../CHANGELOG.md"))(t)
	released := regexp.MustCompile(`(?m)^## \[0\.(\d+)\.`).FindSubmatch(changes)
	if released == nil {
		t.Fatal("the changelog has no release")
	}
	newest, _ := strconv.Atoi(string(released[1]))
	options := map[string]bool{}
	for _, opt := range Linux.settable() {
		options[opt.key] = true
	}
	for name, was := range Linux.former() {
		_, minor, _ := strings.Cut(was.since, "0.")
		since, err := strconv.Atoi(minor)
		if err != nil || newest > since+1 {
			t.Errorf("%s: former since %q, and 0.%d is released", name, was.since, newest)
		}
		if options[name] || was.now != "" && !options[was.now] {
			t.Errorf("%s is now %q: that must be an option, and the former name none", name, was.now)
		}
	}
}

func TestTheFileOfTheReleaseBefore(t *testing.T) {
	const file = "testdata/options-0.2.toml"
	data := harness.Must(os.ReadFile(file))(t)
	all := filepath.Join(t.TempDir(), "all.toml")
	harness.Check(t, os.WriteFile(all, regexp.MustCompile(`(?m)^#([a-z_]+ = )`).ReplaceAll(data, []byte("$1")), 0o600))
	for path, warned := range map[string]string{file: "", all: "slow.floor export.file.max_bytes limits.max_hold"} {
		source := Source{Base: Default(), Path: path}
		o, err := source.Load()
		if err != nil || len(o.Changes(Default())) > 0 {
			t.Errorf("%s: %v, %v", path, err, o.Changes(Default()))
		}
		var keys []string
		for _, w := range source.Warnings(t.Context(), o) {
			keys = append(keys, w.Key)
		}
		harness.Equal(t, strings.Join(keys, " "), warned, path, "there is a warning for")
	}
}
