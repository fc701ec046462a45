package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cniscope/cniscope/pkg/command"
	"github.com/cniscope/cniscope/pkg/config"
)

func configCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check or print the configuration",
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(configCheckCmd(), configPrintCmd())
	return cmd
}

func configCheckCmd() *cobra.Command {
	strict, format := false, ""
	on := string(config.Here())
	cmd := &cobra.Command{
		Use:   "check [FILE|-]",
		Short: "Check a configuration file",
		Long: `Check a configuration file, or standard input (-), and print each mistake with its line and remedy.
For a valid file, print warnings, such as a token sent in plain text to another machine, and the
options that differ from the defaults. The environment is ignored.

The rules and defaults are those of this operating system, or of --os. For another system, check
does not read the files that the configuration names.

The exit code is 1 if the file is invalid; with --strict also if there is a warning.`,
		Args:         cobra.MaximumNArgs(1),
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			file := config.System(on).File()
			if len(args) == 1 {
				file = args[0]
			}
			source := config.Source{Base: config.DefaultFor(config.System(on)), Path: file}
			if file == "-" {
				text, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), 1<<20))
				if err != nil {
					return fmt.Errorf("cannot read standard input: %w", err)
				}
				source.Path, source.Text, source.TextName = "", string(text), "standard input"
			}
			o, err := source.Load()
			out := cmd.OutOrStdout()
			if err != nil && format == "json" {
				err = errors.Join(err, command.Indented(out, newConfigDocument(file, problems(err), nil, nil)))
			}
			if err != nil {
				return err
			}
			warnings := source.Warnings(cmd.Context(), o)
			if format == "json" {
				err = command.Indented(out, newConfigDocument(file, nil, warnings, o.Changes(source.Base)))
				return cmp.Or(err, strictly(strict, file, warnings))
			}
			for _, w := range warnings {
				fmt.Fprintf(out, "warning: %s\n", w.Error())
			}
			if err := strictly(strict, file, warnings); err != nil {
				return err
			}
			if len(warnings) == 0 {
				fmt.Fprintf(out, "%s: valid\n", file)
			} else {
				fmt.Fprintf(out, "%s: valid, with warnings\n", file)
			}
			for _, c := range o.Changes(source.Base) {
				c.Live = true // nothing running would need a restart
				fmt.Fprintf(out, "  %s\n", c.Differs())
			}
			return nil
		},
	}
	formatFlag(cmd, &format)
	cmd.Flags().BoolVar(&strict, "strict", false, "treat warnings as errors")
	cmd.Flags().Var(choice{&on, config.Systems()}, "os", "system of the file: "+strings.Join(config.Systems(), " or "))
	return cmd
}

func configPrintCmd() *cobra.Command {
	on, format := string(config.Here()), ""
	cmd := &cobra.Command{
		Use:   "print [FILE]",
		Short: "Print the configuration in effect",
		Long: `Print the value of every option. It comes from the file, else from the environment, else it is
the default. An option that differs from its default is followed by the default. Secrets are not printed. Warnings,
also of the environment, go to standard error. With --os of another operating system, the environment is ignored.`,
		Args:         cobra.MaximumNArgs(1),
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			source := config.Source{Base: config.DefaultFor(config.System(on))}
			if config.System(on) == config.Here() {
				hostname, _ := os.Hostname() // then the node has no name
				source.Base = config.FromEnvironment(os.Environ(), hostname)
			}
			if len(args) == 1 {
				source.Path = args[0]
			}
			o, err := source.Load()
			if err != nil {
				return err
			}
			for _, w := range source.Warnings(cmd.Context(), o) {
				fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s\n", w.Error())
			}
			if format == "json" {
				return command.Indented(cmd.OutOrStdout(), newConfigDocument(source.Path, nil, nil, o.All()))
			}
			fmt.Fprint(cmd.OutOrStdout(), o.TOML())
			return nil
		},
	}
	formatFlag(cmd, &format)
	cmd.Flags().Var(choice{&on, config.Systems()}, "os", "system of the file: "+strings.Join(config.Systems(), " or "))
	return cmd
}

// configDocument is docs/schemas/config.json.
type configDocument struct {
	Schema   string           `json:"schema"`
	File     string           `json:"file,omitempty"`
	Valid    bool             `json:"valid"`
	Problems []config.Problem `json:"problems"`
	Warnings []config.Problem `json:"warnings"`
	Options  []config.Change  `json:"options"`
}

func newConfigDocument(file string, wrong, warnings []config.Problem, options []config.Change) configDocument {
	none := []config.Problem{}
	return configDocument{
		"cniscope.dev/config/v1", file, len(wrong) == 0, append(none, wrong...), append(none, warnings...),
		append([]config.Change{}, options...),
	}
}

func strictly(strict bool, file string, warnings []config.Problem) error {
	if strict && len(warnings) > 0 {
		return fmt.Errorf("%s: warnings are errors with --strict", file)
	}
	return nil
}

func problems(err error) []config.Problem {
	if all, are := errors.AsType[config.Problems](err); are {
		return all
	}
	return []config.Problem{{What: err.Error()}}
}
