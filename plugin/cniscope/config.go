package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cniscope/cniscope/pkg/config"
)

func configCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check the options, or print what is in force",
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(configCheckCmd(), configPrintCmd())
	return cmd
}

func configCheckCmd() *cobra.Command {
	strict := false
	on := string(config.Here())
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Say what is wrong in an options file, each mistake with its line and remedy",
		Long: `Say what is wrong in an options file, each mistake with its line and remedy.
For a valid file it warns of what is unwise, such as a token that is sent in plain text to
another machine, and lists what differs from the defaults. It ignores the environment.

The rules and defaults are those of this system. With --os a file for another one is checked;
the files that it names are not looked at then.

It ends with 0 if the file can be used, with 1 if it cannot; with --strict also if there
is a warning.`,
		Args:         cobra.ExactArgs(1),
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			source := config.Source{Base: config.DefaultFor(config.System(on)), Path: args[0]}
			o, err := source.Load()
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			warnings := source.Warnings(cmd.Context(), o)
			for _, w := range warnings {
				fmt.Fprintf(out, "warning: %s\n", w.Error())
			}
			if strict && len(warnings) > 0 {
				return fmt.Errorf("%s: warnings count with --strict", args[0])
			}
			if len(warnings) == 0 {
				fmt.Fprintf(out, "%s is right\n", args[0])
			} else {
				fmt.Fprintf(out, "%s can be used; see the warnings above\n", args[0])
			}
			for _, c := range o.Changes(source.Base) {
				c.Live = true // nothing running would need a restart
				fmt.Fprintf(out, "  %s\n", c)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "take warnings for mistakes")
	cmd.Flags().Var(choice{&on, config.Systems()}, "os", "the system that the file is for: "+strings.Join(config.Systems(), " or "))
	return cmd
}

func configPrintCmd() *cobra.Command {
	on := string(config.Here())
	cmd := &cobra.Command{
		Use:   "print [FILE]",
		Short: "Print every option as it is in force, with the defaults of what differs",
		Long: `Print every option as it is in force: the defaults, changed by the environment,
changed by the file. An option that differs from its default is followed by the default. Secrets are
not shown. With --os of another system, the environment is ignored.`,
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
			fmt.Fprint(cmd.OutOrStdout(), o.TOML())
			return nil
		},
	}
	cmd.Flags().Var(choice{&on, config.Systems()}, "os", "the system that the options are for: "+strings.Join(config.Systems(), " or "))
	return cmd
}
