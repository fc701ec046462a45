package main

import (
	"github.com/spf13/cobra"

	"github.com/cniscope/cniscope/pkg/command"
)

var linked, commit, date string

func thisBuild() command.Build { return command.BuildOf("kubectl cniscope", linked, commit, date) }

func versionCmd(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: o.runs(func(cmd *cobra.Command, _ []string) error {
			return thisBuild().Print(cmd.OutOrStdout(), o.format)
		}),
	}
}
