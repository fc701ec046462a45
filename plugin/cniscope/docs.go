package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// docsCmd writes what packages install beside the program.
func docsCmd() *cobra.Command {
	return &cobra.Command{
		Use:    "docs DIR",
		Short:  "Write man pages and shell completions below DIR",
		Args:   cobra.ExactArgs(1),
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			root, dir := cmd.Root(), args[0]
			root.DisableAutoGenTag = true
			for _, write := range []struct {
				path string
				do   func(path string) error
			}{
				{"man/man1/", func(path string) error {
					return doc.GenManTree(root, &doc.GenManHeader{Title: "CNISCOPE", Section: "1", Source: "cniscope"}, path)
				}},
				{"bash-completion/completions/cniscope", func(path string) error { return root.GenBashCompletionFileV2(path, true) }},
				{"zsh/site-functions/_cniscope", root.GenZshCompletionFile},
				{"fish/vendor_completions.d/cniscope.fish", func(path string) error { return root.GenFishCompletionFile(path, true) }},
			} {
				path := filepath.Join(dir, filepath.FromSlash(write.path))
				if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(write.path+"x")), 0o755); err != nil {
					return err
				}
				if err := write.do(path); err != nil {
					return fmt.Errorf("writing %s: %w", path, err)
				}
			}
			return nil
		},
	}
}
