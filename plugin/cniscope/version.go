package main

import (
	"github.com/spf13/cobra"

	"github.com/cniscope/cniscope/pkg/command"
)

// linked, commit and date are set by the linker (-X main.linked=v1.2.3).
var linked, commit, date string

func thisBuild() command.Build { return command.BuildOf("cniscope", linked, commit, date) }

func version() string { return thisBuild().Version }

func versionCmd() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version and its commit",
		Long: `Print the version, the platform, the version of Go, and the commit with its date.
cniscope --version prints the same.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return thisBuild().Print(cmd.OutOrStdout(), format) },
	}
	formatFlag(cmd, &format)
	return cmd
}
