//go:build !windows

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
		if err := noteElsewhere(root, o.Export.Spool.Dir, o.BaselineFolder()); err != nil {
			fmt.Fprintf(cmd.ErrOrStderr(),
				"cniscope: a spool or baseline outside of %s stays when the package is purged: %v\n", stateFolder, err)
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

const stateFolder = "/var/lib/cniscope"

// noteElsewhere notes directories outside of /var/lib/cniscope for the purge, which has no options.
func noteElsewhere(root string, dirs ...string) error {
	var lines []string
	for _, dir := range dirs {
		dir, none := filepath.Clean(dir), dir == ""
		switch {
		case none || slices.Contains(lines, dir) || dir == stateFolder || strings.HasPrefix(dir, stateFolder+"/"):
		case !filepath.IsAbs(dir) || strings.ContainsAny(dir, "\n\r"):
			return fmt.Errorf("%q cannot be written down", dir)
		default:
			lines = append(lines, dir)
		}
	}
	if len(lines) == 0 {
		return nil
	}
	if err := os.MkdirAll(filepath.Join(root, stateFolder), 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, stateFolder, "spool-elsewhere"), []byte(strings.Join(lines, "\n")+"\n"), 0o600)
}
