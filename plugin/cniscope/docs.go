package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

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
				{"man/man1/", func(path string) error { return manPages(root, path) }},
				{"bash-completion/completions/cniscope", func(path string) error { return root.GenBashCompletionFileV2(path, true) }},
				{"zsh/site-functions/_cniscope", root.GenZshCompletionFile},
				{"fish/vendor_completions.d/cniscope.fish", func(path string) error { return root.GenFishCompletionFile(path, true) }},
			} {
				path := filepath.Join(dir, filepath.FromSlash(write.path))
				if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(write.path+"x")), 0o755); err != nil {
					return err
				}
				if err := write.do(path); err != nil {
					return fmt.Errorf("cannot write %s: %w", path, err)
				}
			}
			return nil
		},
	}
}

func manPages(cmd *cobra.Command, dir string) error {
	for _, each := range cmd.Commands() {
		if each.IsAvailableCommand() && !each.IsAdditionalHelpTopicCommand() {
			if err := manPages(each, dir); err != nil {
				return err
			}
		}
	}
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	page, err := manPage(cmd, name)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name+".1"), page, 0o644) //nolint:gosec // everybody may read it
}

// manPage keeps the lines of examples, which cobra would fill.
func manPage(cmd *cobra.Command, name string) ([]byte, error) {
	long, example := cmd.Long, cmd.Example
	defer func() { cmd.Long, cmd.Example = long, example }()
	var blocks []string
	cmd.Long, blocks = takeExamples(strings.TrimRight(long+"\n\n"+example, "\n"))
	cmd.Example = ""
	var page bytes.Buffer
	header := &doc.GenManHeader{Title: strings.ToUpper(name), Section: "1", Source: "cniscope", Manual: "cniscope"}
	if err := doc.GenMan(cmd, header, &page); err != nil {
		return nil, err
	}
	text := page.String()
	for i, block := range blocks {
		text = strings.Replace(text, placeOf(i)+"\n", block, 1)
	}
	_, command, _ := strings.Cut(cmd.CommandPath(), " ")
	if before, after, ok := strings.Cut(text, "\n.SH SEE ALSO"); ok {
		return []byte(before + exitStatus(command) + "\n.SH SEE ALSO" + after), nil
	}
	return []byte(text + exitStatus(command)), nil
}

func placeOf(i int) string { return fmt.Sprintf("EXAMPLE%dHERE", i) }

func takeExamples(text string) (rest string, blocks []string) {
	var out, block []string
	end := func() {
		if len(block) > 0 {
			out = append(out, "", placeOf(len(blocks)), "")
			blocks = append(blocks, ".RS 2\n.nf\n"+strings.Join(block, "\n")+"\n.fi\n.RE\n")
			block = nil
		}
	}
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, "  ") {
			block = append(block, verbatim(strings.TrimPrefix(line, "  ")))
			continue
		}
		end()
		out = append(out, line)
	}
	end()
	return strings.Join(out, "\n"), blocks
}

func verbatim(line string) string {
	line = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`).Replace(line)
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, `\(aq`) {
		return `\&` + line
	}
	return line
}
