// Command cniscope-reader is the unprivileged query sidecar: it answers users who exec into it, and writes Events.
// Only it uses the Kubernetes API.
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
	"github.com/cniscope/cniscope/pkg/fleet"
	"github.com/cniscope/cniscope/pkg/privilege"
)

// linked is set by the release build.
var linked string

func main() { os.Exit(execute()) }

func execute() int {
	if err := privilege.Hide(); err != nil {
		fmt.Fprintln(os.Stderr, "cniscope-reader:", err)
		return fleet.NoAnswer
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := rootCmd().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "cniscope-reader:", err)
		return exitCode(err)
	}
	return fleet.Answered
}

func rootCmd() *cobra.Command {
	version := linked
	if version == "" {
		version = "devel"
	}
	cmd := &cobra.Command{
		Use:   "cniscope-reader",
		Short: "Answer queries about a node and write Kubernetes Events",
		Long: `cniscope-reader is the query sidecar in the DaemonSet's pod. It has no capability, and sees only one of the
node's files, a socket. Over this socket cniscope answers queries and accepts no commands.

  cniscope-reader serve            keep the container running for ask; with --events write Events
  cniscope-reader ask calls        answer a query; kubectl cniscope runs this by exec

The settings are environment variables, so that a user who can exec into the pod cannot change them:

  CNISCOPE_READ_SOCKET   cniscope's socket (` + control.DefaultReadSocket + `)
  NODE_NAME              the node's name, for Events`,
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	cmd.AddCommand(askCmd(), serveCmd())
	command.Prepare(cmd)
	return cmd
}

func exitCode(err error) int {
	switch {
	case errors.As(err, new(command.Usage)):
		return fleet.Misused
	case errors.Is(err, control.ErrNotRemembered):
		return fleet.NotRemembered
	case errors.Is(err, control.ErrBusy):
		return fleet.Busy
	}
	return fleet.NoAnswer
}

func setting(name, otherwise string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return otherwise
}

func node() control.Reader {
	return control.Reader{Path: setting("CNISCOPE_READ_SOCKET", control.DefaultReadSocket)}
}
