//go:build !windows

package main

import (
	"github.com/spf13/cobra"

	"github.com/cniscope/cniscope/pkg/install"
)

func uninstallCmd() *cobra.Command {
	var purge, dryRun bool
	root, format := "/", ""
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Remove what cniscope install added to this node",
		Long: `Remove what cniscope install added to this node, and restore the previous state. Files that
you changed, such as the configuration file, stay unless you add --purge. The spool
([export.spool]) always stays.

uninstall does not restart containerd, but prints whether you need to.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			plan, err := install.NewRemoval(install.Options{Root: root}, purge)
			if err != nil {
				return err
			}
			return carryOut(cmd, plan, dryRun, root, format)
		},
	}
	formatFlag(cmd, &format)
	f := cmd.Flags()
	f.BoolVar(&purge, "purge", false, "also remove files that you changed")
	f.BoolVar(&dryRun, "dry-run", false, "print the changes as a unified diff, and change nothing")
	f.StringVar(&root, "root", root, "uninstall from the file tree below this directory")
	return cmd
}
