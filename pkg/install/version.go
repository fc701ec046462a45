package install

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/cniscope/cniscope/pkg/disk"
	"github.com/cniscope/cniscope/pkg/runtime"
)

// Version is a version of containerd, and who says so.
type Version struct {
	Text  string
	Major int
	minor int // -1 if it is not known
	From  string
	// inferred: from a configuration, which several versions understand.
	inferred bool
}

func (v Version) String() string { return fmt.Sprintf("containerd %s (%s)", v.Text, v.From) }

// hasNRI reports whether it has the NRI that cniscope speaks.
func (v Version) hasNRI() bool { return v.Major > 1 || v.minor < 0 || v.minor >= 7 }

// tracesCNI reports whether it tells CNI plugins of the trace that they are part of.
func (v Version) tracesCNI() bool {
	return v.Major > 2 || v.Major == 2 && (v.minor < 0 || v.minor >= 4)
}

var versionForm = regexp.MustCompile(`^v?([0-9]+)(?:\.([0-9]+)\S*)?$`)

func parseVersion(text, from string) (Version, error) {
	m := versionForm.FindStringSubmatch(text)
	if m == nil {
		return Version{}, fmt.Errorf("%q is no version of containerd (%s): want one as 2.4.2 or 1.7", text, from)
	}
	v := Version{Text: strings.TrimPrefix(text, "v"), minor: -1, From: from}
	var err error
	if v.Major, err = strconv.Atoi(m[1]); err == nil && m[2] != "" {
		v.minor, err = strconv.Atoi(m[2])
	}
	return v, err
}

// binaries are where containerd is usually installed.
var binaries = []string{"/usr/local/bin/containerd", "/usr/bin/containerd", "/usr/local/sbin/containerd", "/usr/sbin/containerd", "/bin/containerd"}

// remembered is who says a version that was told at an earlier installation.
const remembered = "as it was told before"

// version asks containerd itself, if it runs here; then reads its program; then takes what
// was told before; then infers it from its configuration.
func (t tree) version(ctx context.Context, o Options, m *manifest, c *configuration) (Version, error) {
	if o.ContainerdVersion != "" {
		return parseVersion(o.ContainerdVersion, "--containerd-version")
	}
	if t.live() {
		if r, err := runtime.Ask(ctx, c.address()); err == nil && r.Name == runtime.Containerd {
			return parseVersion(r.Version, c.address())
		}
	}
	for _, path := range binaries {
		if v, ok := t.built(path); ok {
			return v, nil
		}
	}
	if told := m.Choice.ContainerdVersion; told != "" {
		return parseVersion(told, remembered)
	}
	switch v := c.version(); {
	case v > 2:
		return Version{Text: "2", Major: 2, minor: -1, From: fmt.Sprintf("its configuration has version %d", v), inferred: true}, nil
	case len(c.files) > 0:
		// Both understand it. What is right for the older one is right for the newer, too.
		return Version{Text: "1.7", Major: 1, minor: 7, From: fmt.Sprintf("its configuration has version %d", v), inferred: true}, nil
	}
	return Version{}, fmt.Errorf("containerd's version is not known: it does not answer at %s, its program is not in %s, and there is no %s; name it: --containerd-version 2.4",
		c.address(), strings.Join(binaries[:2], " or "), o.config())
}

var linkedVersion = regexp.MustCompile(`/version\.Version=([^\s"']+)`)

// built reads what the Go linker wrote into a program. Releases name their version among the linker's flags,
// builds by `go install` that of their module; of others at least the module's path tells 1 from 2.
func (t tree) built(path string) (Version, bool) {
	file, err := t.file(path)
	if err != nil || !t.exists(path) {
		return Version{}, false
	}
	f, err := disk.Open(t.disk, file)
	if err != nil {
		return Version{}, false
	}
	defer f.Close()
	info, err := buildinfo.Read(f)
	if err != nil || !strings.HasPrefix(info.Main.Path, "github.com/containerd/containerd") {
		return Version{}, false
	}
	return builtVersion(info, path), true
}

func builtVersion(info *debug.BuildInfo, from string) Version {
	for _, s := range info.Settings {
		if m := linkedVersion.FindStringSubmatch(s.Value); m != nil && s.Key == "-ldflags" {
			if v, err := parseVersion(m[1], from); err == nil {
				return v
			}
		}
	}
	// A version that Go made up (v0.0.0-…) says less than the path.
	if v, err := parseVersion(info.Main.Version, from); err == nil && v.Major > 0 {
		return v
	}
	v := Version{Text: "1", Major: 1, minor: -1, From: from}
	if strings.HasSuffix(info.Main.Path, "/v2") {
		v.Text, v.Major = "2", 2
	}
	return v
}
