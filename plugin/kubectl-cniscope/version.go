package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// linked, commit and date are set by the release build (-ldflags "-X main.linked=v1.2.3").
var linked, commit, date string

// build returns the program's version.
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

func versionCmd() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: arguments(cobra.NoArgs),
		Run: func(cmd *cobra.Command, _ []string) { fmt.Fprintln(cmd.OutOrStdout(), version()) },
	}
}
