//go:build !windows

package main

import (
	"github.com/spf13/cobra"

	"github.com/cniscope/cniscope/pkg/install"
)

func uninstallCmd() *cobra.Command {
	var purge, dryRun bool
	root := "/"
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Take away what cniscope install has put on this node",
		Long: `Take away what cniscope install has put on this node, and leave everything else as it was
before. Files that you changed since, as options usually are, stay; --purge removes them,
too. Operations on disk ([export.spool]) stay.

It does not restart containerd, and tells you if that is needed.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			plan, err := install.NewRemoval(install.Options{Root: root}, purge)
			if err != nil {
				return err
			}
			return carryOut(cmd, plan, dryRun, root)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&purge, "purge", false, "remove also files that were changed since they were installed")
	f.BoolVar(&dryRun, "dry-run", false, "only show what would be changed, as a unified diff")
	f.StringVar(&root, "root", root, "uninstall from the tree below this folder")
	return cmd
}
