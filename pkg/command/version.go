package command

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
)

// Build is docs/schemas/version.json.
type Build struct {
	program  string
	Schema   string `json:"schema"`
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`   // of git, whole
	Date     string `json:"date,omitempty"`     // the commit's, RFC 3339 in UTC
	Modified bool   `json:"modified,omitempty"` // changed since the commit
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

// BuildOf prefers the linker's values.
func BuildOf(program, version, commit, date string) Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	b := buildOf(info, version, commit, date)
	b.program, b.Schema = program, "cniscope.dev/version/v1"
	return b
}

func buildOf(info *debug.BuildInfo, version, commit, date string) Build {
	b := Build{Version: version, Commit: commit, Date: date, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	b.Commit, b.Modified = strings.CutSuffix(b.Commit, "-dirty")
	if b.Version == "" {
		b.Version = "devel"
		if v := info.Main.Version; v != "" && v != "(devel)" {
			b.Version = v
		}
	}
	if b.Commit != "" {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Date = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

func (b Build) String() string {
	line := fmt.Sprintf("%s %s %s/%s %s", b.program, b.Version, b.OS, b.Arch, b.Go)
	if b.Commit != "" {
		line += fmt.Sprintf(" commit %.12s", b.Commit)
	}
	if b.Modified {
		line += " with changes"
	}
	if b.Date != "" {
		line += " of " + b.Date
	}
	return line
}

// Print writes a line, or JSON.
func (b Build) Print(out io.Writer, format string) error {
	if format == "json" {
		return Indented(out, b)
	}
	_, err := fmt.Fprintln(out, b)
	return err
}

// Indented writes JSON for people.
func Indented(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
