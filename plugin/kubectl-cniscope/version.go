package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// linked, commit and date are set by the release build.
var linked, commit, date string

func build() string {
	if linked != "" {
		return linked
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}

func version() string {
	said := fmt.Sprintf("kubectl cniscope %s %s/%s %s", build(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	if commit != "" {
		said += fmt.Sprintf("\ncommit %.12s of %s", commit, cmp.Or(date, "?"))
	}
	return said
}

func versionCmd(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: o.runs(func(cmd *cobra.Command, _ []string) error {
			if o.format == "json" {
				return indented(cmd.OutOrStdout(), map[string]string{
					"schema": "cniscope.dev/version/v1", "version": build(), "commit": commit, "date": date,
					"go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH,
				})
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), version())
			return err
		}),
	}
}
