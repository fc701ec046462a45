package command

import (
	"bytes"
	"encoding/json"
	"runtime/debug"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

// A release knows its commit from the linker, another build from what Go notes, and a build
// without a repository neither.
func TestABuildKnowsWhatItWasBuiltFrom(t *testing.T) {
	noted := &debug.BuildInfo{
		Main:     debug.Module{Version: "v0.3.1-0.20261122080000-5c8fa82ed6c7"},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "aaaabbbbcccc1111"}, {Key: "vcs.time", Value: "2026-11-01T00:00:00Z"}, {Key: "vcs.modified", Value: "true"}},
	}
	for _, c := range []struct {
		name                  string
		info                  *debug.BuildInfo
		version, commit, date string
		want                  Build
	}{
		{"release", noted, "v0.2.0", "ddddeeeeffff2222", "2026-11-22T08:00:00Z", Build{Version: "v0.2.0", Commit: "ddddeeeeffff2222", Date: "2026-11-22T08:00:00Z"}},
		{"draft", noted, "v0.2.0", "ddddeeeeffff2222-dirty", "2026-11-22T08:00:00Z", Build{Version: "v0.2.0", Commit: "ddddeeeeffff2222", Date: "2026-11-22T08:00:00Z", Modified: true}},
		{"go build", noted, "", "", "", Build{Version: "v0.3.1-0.20261122080000-5c8fa82ed6c7", Commit: "aaaabbbbcccc1111", Date: "2026-11-01T00:00:00Z", Modified: true}},
		{"make build VERSION=v9", noted, "v9.0.0", "", "", Build{Version: "v9.0.0", Commit: "aaaabbbbcccc1111", Date: "2026-11-01T00:00:00Z", Modified: true}},
		{"no repository", &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "", "", "", Build{Version: "devel"}},
	} {
		got := buildOf(c.info, c.version, c.commit, c.date)
		got.Go, got.OS, got.Arch = "", "", ""
		harness.Equal(t, got, c.want, c.name)
	}
}

func TestVersionIsOneLineOrJSON(t *testing.T) {
	b := Build{program: "cniscope", Version: "v0.2.0", Commit: "ddddeeeeffff2222", Date: "2026-11-22T08:00:00Z", Modified: true, Go: "go1.26.8", OS: "linux", Arch: "arm64"}
	const line = "cniscope v0.2.0 linux/arm64 go1.26.8 commit ddddeeeeffff with changes of 2026-11-22T08:00:00Z"
	harness.Equal(t, b.String(), line, b)
	var out bytes.Buffer
	harness.Check(t, b.Print(&out, "json"))
	read := Build{program: b.program}
	if err := json.Unmarshal(out.Bytes(), &read); err != nil || read != b {
		t.Errorf("%s: %v", &out, err)
	}
}
