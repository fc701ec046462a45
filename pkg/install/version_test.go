package install

import (
	"os"
	"runtime/debug"
	"strings"
	"testing"
)

func TestVersionsThatAreTold(t *testing.T) {
	for text, want := range map[string]string{
		"2.4.2": "2 true true", "v2.3.7": "2 true false", "1.7.35+unknown": "1 true false", "1.6.30~ds1": "1 false false",
		"2": "2 true true", "3.0.0-rc.1": "3 true true",
	} {
		v, err := parseVersion(text, "test")
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if got := strings.Join([]string{itoa(v.Major), btoa(v.hasNRI()), btoa(v.tracesCNI())}, " "); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	for _, text := range []string{"", "x", "2 4", "latest", "2.x", "99999999999999999999"} {
		if v, err := parseVersion(text, "test"); err == nil {
			t.Errorf("%q is %v", text, v)
		}
	}
}

func itoa(n int) string { return string(rune('0' + n)) }
func btoa(b bool) string {
	if b {
		return "true"
	}
	return "false"
}

// What the linker wrote into containerd's program: by `go install`, for a release, with
// its paths trimmed, from a work tree.
func TestVersionsThatAreBuiltIn(t *testing.T) {
	build := func(path, version, ldflags string) *debug.BuildInfo {
		return &debug.BuildInfo{
			Main:     debug.Module{Path: path, Version: version},
			Settings: []debug.BuildSetting{{Key: "-ldflags", Value: ldflags}},
		}
	}
	const one, two = "github.com/containerd/containerd", "github.com/containerd/containerd/v2"
	for _, test := range []struct {
		info *debug.BuildInfo
		want string
	}{
		{build(two, "v2.4.2", ""), "2.4.2"},
		{build(two, "(devel)", "-X github.com/containerd/containerd/v2/version.Version=v2.1.4 -X github.com/containerd/containerd/v2/version.Revision=abc -s -w"), "2.1.4"},
		{build(one, "v0.0.0-20240101000000-abcdef123456", `"-X github.com/containerd/containerd/version.Version=1.7.24"`), "1.7.24"},
		{build(two, "(devel)", ""), "2"},
		{build(one, "(devel)", ""), "1"},
		{build(one, "v0.0.0-20240101000000-abcdef123456", ""), "1"},
	} {
		if got := builtVersion(test.info, "test"); got.Text != test.want {
			t.Errorf("%s %s: %s, want %s", test.info.Main.Path, test.info.Main.Version, got.Text, test.want)
		}
	}
}

// What was told is remembered, but what is found out counts more: containerd may have been
// replaced since.
func TestAVersionThatWasToldBefore(t *testing.T) {
	n := newNode(t, nil)
	n.install(version("2.3"))
	if p := n.install(nil); p.Changes() || p.wish.version.Text != "2.3" {
		t.Errorf("%s: %s", p.wish.version, steps(p))
	}
	data, err := os.ReadFile("../../test/tools/bin/containerd-1.7/containerd")
	if err != nil {
		t.Skip("run make tools-older: ", err)
	}
	n.write("/usr/bin/containerd", string(data))
	if p := n.plan(nil); p.wish.version.Text != "1.7.35" {
		t.Errorf("it is %s", p.wish.version)
	}
}

// Where containerd does not run, its program tells.
func TestTheVersionOfAProgram(t *testing.T) {
	for _, test := range []struct{ dir, want string }{
		{"", "2.4.2"}, {"containerd-2.3", "2.3.7"}, {"containerd-1.7", "1.7.35"},
	} {
		real := "../../test/tools/bin/" + test.dir + "/containerd"
		data, err := os.ReadFile(real)
		if err != nil {
			t.Skip("run make tools tools-older: ", err)
		}
		n := newNode(t, nil)
		n.write("/usr/bin/containerd", string(data))
		n.write("/usr/local/bin/containerd", "#!/bin/sh\n") // not it
		p := n.plan(edit)
		if p.wish.version.Text != test.want || p.wish.version.From != "/usr/bin/containerd" {
			t.Errorf("%s, want %s", p.wish.version, test.want)
		}
	}
}
