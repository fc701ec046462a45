// Command cniscope is a containerd NRI plugin that traces a node's CNI calls and shows where pod setup spends its
// time.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/cniscope/cniscope/pkg/command"
	"github.com/cniscope/cniscope/pkg/node"
)

func main() {
	node.SetSlack(os.Args)
	os.Exit(execute())
}

func execute() (code int) {
	if code, is := asService(run); is {
		return code
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	endOnSignals(stop)
	return run(ctx)
}

func run(ctx context.Context) (code int) {
	cmd := rootCmd()
	// containerd starts a pre-installed plugin without arguments.
	if len(os.Args) == 1 && node.Preinstalled() {
		cmd.SetArgs([]string{"run"})
	}
	if err := cmd.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "cniscope:", err)
		return exitCode(err)
	}
	return 0
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
	cmd.AddCommand(runCmd(), recordCmd(), showCmd(), diffCmd(), psCmd(), whyCmd(), topCmd(), baselineCmd(), doctorCmd(), configCmd(),
		statusCmd(), versionCmd(), docsCmd(), connectorCmd(), firewallCmd())
	cmd.AddCommand(installation()...)
	cmd.InitDefaultVersionFlag()
	upper := cmd.Flags().VarPF(cmd.Flags().Lookup("version").Value, "V", "V", "")
	upper.NoOptDefVal, upper.Hidden = "true", true
	command.Prepare(cmd)
	return cmd
}

type usageError struct{ error }

func exitCode(err error) int {
	var told interface{ ExitCode() int }
	if errors.As(err, &told) {
		return told.ExitCode()
	}
	var usage usageError
	var unchecked uncheckedError
	if errors.As(err, &usage) || errors.As(err, new(command.Usage)) || errors.As(err, &unchecked) {
		return 2
	}
	return 1
}
