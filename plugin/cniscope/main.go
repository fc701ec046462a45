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
	"github.com/cniscope/cniscope/pkg/control"
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
		if errors.Is(err, control.ErrNotRunning) {
			err = fmt.Errorf("%w; start the service cniscope, or run cniscope install", err)
		}
		if err.Error() != "" {
			fmt.Fprintln(os.Stderr, "cniscope:", err)
		}
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
		Short: "Explain why the network setup of pods is slow or fails",
		Long: `cniscope observes the CNI calls of a node and exports each as a trace: a span for each
plugin run, delegated plugin and command, with slow and failed ones marked. It does not
wrap plugins and does not change CNI configuration.

  cniscope run                   observe this node and export traces
  cniscope record FILE           observe this node and write a recording
  cniscope why POD               explain why a pod's network setup was slow
  cniscope top                   rank the causes of slow and failed CNI calls
  cniscope baseline              show how long each plugin usually runs
  cniscope ps                    list the CNI calls in progress
  cniscope doctor                report why pods on this node get no network
  cniscope show FILE             draw a recording as waterfalls, without a backend
  cniscope diff A B              compare two recordings
  cniscope config check FILE     check a configuration file`,
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
	colorFlag(cmd)
	command.Prepare(cmd)
	return cmd
}

func exitCode(err error) int {
	var told interface{ ExitCode() int }
	if errors.As(err, &told) {
		return told.ExitCode()
	}
	if errors.As(err, new(command.Usage)) || errors.As(err, new(uncheckedError)) {
		return 2
	}
	return 1
}

// linked, commit and date are set by the linker (-X main.linked=v1.2.3).
var linked, commit, date string

func thisBuild() command.Build { return command.BuildOf("cniscope", linked, commit, date) }

func version() string { return thisBuild().Version }

func versionCmd() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version and its commit",
		Long: `Print the version, the platform, the version of Go, and the commit with its date.
cniscope --version prints the same.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return thisBuild().Print(cmd.OutOrStdout(), format) },
	}
	formatFlag(cmd, &format)
	return cmd
}
