//go:build !windows

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cniscope/cniscope/pkg/install"
)

// packagedCmd is for scripts of deb and rpm packages (configs/release/nfpm), whose output users see.
func packagedCmd() *cobra.Command {
	root := "/"
	cmd := &cobra.Command{
		Use:    "packaged",
		Short:  "What the scripts of packages call",
		Hidden: true,
	}
	verb := func(name, short string, do func(cmd *cobra.Command) error) {
		cmd.AddCommand(&cobra.Command{
			Use: name, Short: short, Args: cobra.NoArgs, Hidden: true,
			RunE: func(cmd *cobra.Command, _ []string) error { return do(cmd) },
		})
	}
	verb("configure", "Take over from cniscope install, and say what is left to the operator", func(cmd *cobra.Command) error {
		return takeOver(cmd, root)
	})
	verb("check", "Say whether the service can be started with the options that are there", func(*cobra.Command) error {
		if _, err := (&optionsFile{path: defaultOptionsFile()}).load(); err != nil {
			return fmt.Errorf("not started again, so that what runs goes on: %w; after that: systemctl restart cniscope", err)
		}
		return nil
	})
	verb("remove", "Take back what cniscope install added to containerd, and note where the spool is", func(cmd *cobra.Command) error {
		return handBack(cmd, root)
	})
	return cmd
}

func takeOver(cmd *cobra.Command, root string) error {
	out := cmd.OutOrStdout()
	plan, err := install.NewTakeOver(root)
	if err != nil {
		return err
	}
	if plan != nil {
		fmt.Fprintln(out, "cniscope was installed by cniscope install before: the package takes over")
		if err := carryOut(cmd, plan, false, root, "text"); err != nil {
			return err
		}
	}
	return notes(out, install.AdvisePackaged(cmd.Context(), root))
}

func handBack(cmd *cobra.Command, root string) error {
	if o, err := (&optionsFile{path: defaultOptionsFile()}).load(); err == nil {
		if err := noteSpool(root, o.Export.Spool.Dir); err != nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "cniscope: the spool %s stays when the package is purged: %v\n", filepath.Clean(o.Export.Spool.Dir), err)
		}
	}
	if _, installed, err := install.Remembered(root); err != nil || !installed {
		return err
	}
	plan, err := install.NewRemoval(install.Options{Root: root}, true)
	if err != nil {
		return err
	}
	return carryOut(cmd, plan, false, root, "text")
}

// noteSpool notes a spool outside of /var/lib/cniscope for the purge, which has no options.
func noteSpool(root, dir string) error {
	const state = "/var/lib/cniscope"
	spool := filepath.Clean(dir)
	if dir == "" || spool == state || strings.HasPrefix(spool, state+"/") {
		return nil
	}
	if !filepath.IsAbs(spool) || strings.ContainsAny(spool, "\n\r") {
		return errors.New("its path cannot be written down")
	}
	if err := os.MkdirAll(filepath.Join(root, state), 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, state, "spool-elsewhere"), []byte(spool+"\n"), 0o600)
}
