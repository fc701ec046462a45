// Package command gives the programs' command lines one behavior: usage errors, suggestions, units and former names.
package command

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cniscope/cniscope/pkg/text"
)

// Usage is a usage error; programs exit with 2. Prepare appends where help is.
type Usage struct {
	error
	hinted bool
}

// Usagef returns a usage error.
func Usagef(format string, a ...any) error { return Usage{error: fmt.Errorf(format, a...)} }

// Unwrap returns the cause.
func (u Usage) Unwrap() error { return u.error }

// Prepare makes every command of a tree reject wrong arguments and flags with a Usage, and accept days and weeks in
// durations. It completes the values of flags that list them.
func Prepare(root *cobra.Command) {
	root.SetFlagErrorFunc(flagError)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd("completion")
	usage := root.UsageFunc()
	root.SetUsageFunc(func(c *cobra.Command) error {
		c.Flags().VisitAll(func(f *pflag.Flag) { f.Value = brief(f.Value) })
		return usage(c)
	})
	prepare(root)
}

// Usages returns the help of flags.
func Usages(flags *pflag.FlagSet) string {
	flags.VisitAll(func(f *pflag.Flag) { f.Value = brief(f.Value) })
	return flags.FlagUsages()
}

// Formerly makes a command accept a flag's former name.
func Formerly(cmd *cobra.Command, former, name string) {
	before := cmd.Flags().GetNormalizeFunc()
	cmd.Flags().SetNormalizeFunc(func(set *pflag.FlagSet, given string) pflag.NormalizedName {
		if given == former {
			given = name
		}
		return before(set, given)
	})
}

func prepare(cmd *cobra.Command) {
	check := cmd.Args
	cmd.SuggestionsMinimumDistance = 2
	switch {
	case cmd.Name() == "help" && cmd.Parent() != nil && !cmd.Parent().HasParent():
		cmd.Run, cmd.RunE = nil, help
	case cmd.HasSubCommands() && cmd.Run == nil && cmd.RunE == nil:
		check, cmd.RunE = unknown, func(c *cobra.Command, _ []string) error {
			return Usagef("%s needs a command", c.Name())
		}
	}
	if check != nil {
		cmd.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return hint(c, arguments(c, args, err))
			}
			return nil
		}
	}
	cmd.RunE, cmd.PersistentPreRunE = hinted(cmd.RunE), hinted(cmd.PersistentPreRunE)
	cmd.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		if f.Value.Type() == "duration" {
			f.Value = &duration{Value: f.Value}
			f.DefValue = f.Value.String()
		}
		if c, is := f.Value.(interface{ Values() []string }); is {
			_ = cmd.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(c.Values(), cobra.ShellCompDirectiveNoFileComp))
		}
	})
	for _, each := range cmd.Commands() {
		prepare(each)
	}
}

func hinted(run func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	if run == nil {
		return nil
	}
	return func(c *cobra.Command, args []string) error { return hint(c, run(c, args)) }
}

func hint(c *cobra.Command, err error) error {
	if usage, is := errors.AsType[Usage](err); !is || usage.hinted {
		return err
	}
	return Usage{error: fmt.Errorf("%w\nTry '%s --help'", err, c.CommandPath()), hinted: true}
}

func help(c *cobra.Command, args []string) error {
	of, rest, err := c.Root().Find(args)
	if err != nil || len(rest) > 0 {
		return hint(c.Root(), unknown(c.Root(), args))
	}
	of.InitDefaultHelpFlag()
	return of.Help()
}

func unknown(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	similar := c.SuggestionsFor(args[0])
	for _, of := range c.Commands() {
		for _, below := range of.Commands() {
			if below.Name() == args[0] && of.IsAvailableCommand() {
				similar = append(similar, of.Name()+" "+below.Name())
			}
		}
	}
	return Usagef("unknown command %q%s", args[0], meant(similar))
}

func meant(similar []string) string {
	if len(similar) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(similar, " or ") + "?"
}

func arguments(c *cobra.Command, args []string, err error) error {
	said := err.Error()
	if errors.As(err, new(Usage)) || !strings.Contains(said, " arg(s), ") && !strings.HasPrefix(said, "unknown command ") {
		return err // the command's own
	}
	_, takes, _ := strings.Cut(c.Use, " ")
	if takes = strings.TrimSuffix(takes, " [flags]"); takes == "" {
		takes = "no arguments"
	}
	got := fmt.Sprintf("%d arguments", len(args))
	switch len(args) {
	case 0:
		return Usagef("%s needs an argument: %s %s", c.Name(), c.CommandPath(), takes)
	case 1:
		got = fmt.Sprintf("%q", args[0])
	}
	return Usagef("%s takes %s, got %s", c.Name(), takes, got)
}

func flagError(c *cobra.Command, err error) error {
	if args := c.Flags().Args(); c.HasSubCommands() && len(args) > 0 {
		return hint(c, unknown(c, args))
	}
	if value, is := errors.AsType[*pflag.InvalidValueError](err); is {
		err = fmt.Errorf("invalid value %q of --%s: %w", value.GetValue(), value.GetFlag().Name, errors.Unwrap(value))
	}
	if none, is := errors.AsType[*pflag.NotExistError](err); is {
		similar := &cobra.Command{SuggestionsMinimumDistance: 2}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				similar.AddCommand(&cobra.Command{Use: f.Name, Run: func(*cobra.Command, []string) {}})
			}
		})
		names := similar.SuggestionsFor(none.GetSpecifiedName())
		for i := range names {
			names[i] = "--" + names[i]
		}
		slices.Sort(names)
		err = fmt.Errorf("%w%s", err, meant(names))
	}
	return hint(c, Usage{error: err})
}

// boolean is a flag whose help has no "[=true|false]"; it is set as before.
type boolean struct{ pflag.Value }

func brief(v pflag.Value) pflag.Value {
	if v.Type() == "bool" {
		return boolean{v}
	}
	return v
}

func (boolean) Type() string { return "boolfunc" }

func (boolean) IsBoolFlag() bool { return true }

// duration is a flag that accepts days and weeks, and prints what was typed.
type duration struct {
	pflag.Value
	typed string
}

func (d *duration) Set(s string) error {
	parsed, err := text.Duration(s)
	if err != nil {
		return err
	}
	d.typed = s
	return d.Value.Set(parsed.String())
}

func (d *duration) String() string {
	if zero := time.Duration(0).String(); d.typed == "" && d.Value.String() == zero {
		return "" // help prints no default
	}
	return cmp.Or(d.typed, d.Value.String())
}
