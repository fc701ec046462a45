// Command cniscope is a containerd NRI plugin that traces a node's CNI calls and shows where pod setup spends its
// time.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cniscope/cniscope/pkg/node"
)

func main() {
	node.SetSlack(os.Args)
	os.Exit(execute())
}

func execute() (code int) {
	if code, is := asService(command); is {
		return code
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	endOnSignals(stop)
	return command(ctx)
}

func command(ctx context.Context) (code int) {
	cmd := rootCmd()
	// containerd starts a pre-installed plugin without arguments.
	if len(os.Args) == 1 && node.Preinstalled() {
		cmd.SetArgs([]string{"run"})
	}
	if err := called(cmd, cmd.ExecuteContext(ctx)); err != nil {
		fmt.Fprintln(os.Stderr, "cniscope:", err)
		return exitCode(err)
	}
	return 0
}

func called(root *cobra.Command, err error) error {
	var known usageError
	if err != nil && !errors.As(err, &known) && strings.HasPrefix(err.Error(), "unknown command ") {
		said, similar, _ := strings.Cut(err.Error(), "\n\nDid you mean this?\n")
		if names := strings.Fields(similar); len(names) > 0 {
			said += "; did you mean " + strings.Join(names, " or ") + "?"
		}
		return usageError{fmt.Errorf("%s\nTry '%s --help'", said, root.Name())}
	}
	return err
}

func endOnSignals(end func()) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		end()
		number, _ := (<-signals).(syscall.Signal)
		os.Exit(128 + int(number))
	}()
}

func rootCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cniscope",
		Short: "Show where the seconds of a pod's network setup went",
		Long: `cniscope watches the CNI plugins of a node and turns every call into a trace:
each plugin of the chain, each IPAM delegate, each external command, with slow and
failed ones flagged. It wraps nothing and changes no CNI configuration.

  cniscope run                   observe this node and export traces
  cniscope record FILE           observe this node and write down what happens
  cniscope why POD               say where the seconds of a pod's network setup went
  cniscope top                   count what was slow or failed, by cause
  cniscope baseline              show how long each plugin usually runs
  cniscope ps                    list the calls in progress
  cniscope doctor                say what is wrong with this node's pod network
  cniscope show FILE             draw what was recorded, without any backend
  cniscope diff A B              compare two recordings
  cniscope config check FILE     say what is wrong in an options file`,
		Version:       thisBuild().String(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	cmd.SetVersionTemplate("{{.Version}}\n")
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		var unknown *pflag.NotExistError
		if errors.As(err, &unknown) {
			if unknown.GetSpecifiedName() == "patience" {
				err = fmt.Errorf("%w: it is now called --answer-timeout", err)
			}
		}
		return usageError{err}
	})
	cmd.AddCommand(runCmd(), recordCmd(), showCmd(), diffCmd(), psCmd(), whyCmd(), topCmd(), baselineCmd(), doctorCmd(), configCmd(),
		statusCmd(), versionCmd(), docsCmd(), connectorCmd(), firewallCmd())
	cmd.AddCommand(installation()...)
	argumentsAreUsage(cmd)
	return cmd
}

func argumentsAreUsage(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return usageError{fmt.Errorf("%w; see: %s --help", err, c.CommandPath())}
			}
			return nil
		}
	}
	if cmd.HasParent() && cmd.HasSubCommands() && !cmd.Runnable() {
		cmd.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	}
	for _, each := range cmd.Commands() {
		argumentsAreUsage(each)
	}
}

type usageError struct{ error }

func exitCode(err error) int {
	var told interface{ ExitCode() int }
	if errors.As(err, &told) {
		return told.ExitCode()
	}
	var usage usageError
	var unchecked uncheckedError
	if errors.As(err, &usage) || errors.As(err, &unchecked) {
		return 2
	}
	return 1
}
