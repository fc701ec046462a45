package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// linked, commit and date are set by the linker (-X main.linked=v1.2.3).
var linked, commit, date string

type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`   // of git, whole
	Date     string `json:"date,omitempty"`     // the commit's, RFC 3339 in UTC
	Modified bool   `json:"modified,omitempty"` // changed since the commit
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

func thisBuild() build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return buildOf(info, linked, commit, date)
}

func buildOf(info *debug.BuildInfo, version, commit, date string) build {
	b := build{Version: version, Commit: commit, Date: date, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
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

func (b build) String() string {
	line := fmt.Sprintf("cniscope %s %s/%s %s", b.Version, b.OS, b.Arch, b.Go)
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

func version() string { return thisBuild().Version }

func versionCmd() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version and its commit",
		Long: `Print the version, the platform, the version of Go, and the commit with its date.
cniscope --version prints the same.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return printBuild(cmd.OutOrStdout(), thisBuild(), format)
		},
	}
	formatFlag(cmd, &format)
	return cmd
}

func printBuild(w io.Writer, b build, format string) error {
	if format == "json" {
		return indented(w, struct {
			Schema string `json:"schema"`
			build
		}{"cniscope.dev/version/v1", b})
	}
	_, err := fmt.Fprintln(w, b)
	return err
}
