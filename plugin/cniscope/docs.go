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
	return os.WriteFile(filepath.Join(dir, name+".1"), page, 0o644) //nolint:gosec // world-readable
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

type exit struct {
	command string // without the program's name; empty: all
	code    string
	when    string
}

// exits is the source of docs/exit-codes.md and man pages; a test runs each.
func exits() []exit {
	const unreadable = "the recording is unreadable, or contains no matching call"
	return []exit{
		{"", "0", "success"},
		{"", "1", "it failed (standard error has the cause), or found a problem"},
		{"", "2", "usage error: unknown command, flag or value"},
		{"", "128+n", "second signal n before it had stopped: 130 for SIGINT, 143 for SIGTERM"},
		{"run", "0", "stopped by SIGTERM or SIGINT, or because the containerd that started it exited"},
		{"run", "1", "invalid configuration file, the kernel refused observation, or it did not stop in time"},
		{"run", "75", "another cniscope observes this node"},
		{"record", "0", "the recording is complete, until Ctrl-C or --for"},
		{"record", "1", "FILE exists or is not writable, or as for run"},
		{"record", "75", "another cniscope observes this node and does not share its events"},
		{"show", "0", "drawn or sent, and every call is within the limits, if any"},
		{"show", "1", unreadable + " to send, or a call exceeds a limit (--max-…)"},
		{"show", "2", "usage error, or the limits cannot be checked: no matching call, or the recording is incomplete"},
		{"show", "3", "the recording or spool is incomplete, and standard error names the reason; the rest is shown"},
		{"diff", "0", "compared, with or without differences"},
		{"diff", "1", unreadable},
		{"ps", "0", "calls in progress are listed, if any"},
		{"ps", "1", "cniscope is not running here, or refuses this user"},
		{"why", "0", "the node history of the pod is drawn"},
		{"why", "1", "the node history has no such pod, cniscope is not running here, or it refuses this user"},
		{"top", "0", "causes are counted, if any"},
		{"top", "1", "cniscope is not running here, or refuses this user"},
		{"baseline", "0", "the baseline is shown, exported or imported"},
		{"baseline", "1", "no baseline, no permission, or an invalid file; with --import also: cniscope is running"},
		{"doctor", "0", "every check was made and nothing was found; with --wait: it is ready"},
		{"doctor", "1", "a problem or a warning was found; with --wait: it was not ready in time"},
		{"doctor", "3", "nothing was found but a check was not possible, or the configuration file is invalid"},
		{"config check", "0", "the file is valid; with --strict also without warnings"},
		{"config check", "1", "the file is invalid or unreadable; with --strict also: there is a warning"},
		{"config print", "0", "the options are printed"},
		{"config print", "1", "the file or the environment is invalid"},
		{"install", "0", "installed, or was already; with --dry-run: installation is possible"},
		{"install", "1", "installation is not possible, and nothing was changed"},
		{"status", "0", "installed, in any state, or running"},
		{"status", "1", "neither installed nor running"},
		{"uninstall", "0", "removed; with --dry-run: removal is possible"},
		{"uninstall", "1", "not installed, or removal failed"},
		{"version", "0", "the version is printed"},
	}
}

func exitsOf(command string) (all []exit) {
	for _, e := range exits() {
		if e.command == command {
			all = append(all, e)
		}
	}
	if len(all) == 0 && command != "" {
		return exitsOf("")
	}
	return all
}

// exitStatus is a man page's section (man-pages(7)).
func exitStatus(command string) string {
	var b strings.Builder
	b.WriteString("\n.SH EXIT STATUS\n")
	for _, e := range exitsOf(command) {
		fmt.Fprintf(&b, ".TP\n%s\n%s\n", verbatim(e.code), verbatim(e.when))
	}
	return b.String()
}
