// Command kubectl-cniscope explains slow pod networks of a cluster with its user's permissions (docs/fleet.md).
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/klog/v2"

	"github.com/cniscope/cniscope/pkg/command"
	"github.com/cniscope/cniscope/pkg/fleet/digest"
)

func main() { os.Exit(execute(os.Args, os.Stdout, os.Stderr)) }

func execute(args []string, out, diagnostics io.Writer) int {
	// client-go logs retries; failures return as errors.
	klog.SetLogger(klog.Logger{})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal kills
	cmd := rootCmd()
	cmd.SetOut(out)
	cmd.SetErr(diagnostics)
	cmd.SetArgs(completing(args))
	err := cmd.ExecuteContext(ctx)
	switch {
	case err == nil:
		return exitDone
	case ctx.Err() != nil && !errors.As(err, new(codeError)):
		fmt.Fprintln(diagnostics, "kubectl cniscope: interrupted")
		return exitInterrupted
	}
	fmt.Fprintln(diagnostics, "kubectl cniscope:", err)
	return exitCode(err)
}

// completing returns the arguments; kubectl's completion runs a link named kubectl_complete-cniscope.
func completing(args []string) []string {
	name := strings.TrimSuffix(filepath.Base(args[0]), ".exe")
	if name == "kubectl_complete-cniscope" {
		return append([]string{cobra.ShellCompRequestCmd}, args[1:]...)
	}
	return args[1:]
}

// formerly accepts flags' names of 0.2.
func formerly(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	for former, now := range map[string]string{"format": "output", "last": "limit"} {
		if name == former {
			name = now
		}
	}
	return pflag.NormalizedName(name)
}

func rootCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "kubectl-cniscope",
		Short: "Explain why pods get their network late or not at all",
		Long: `kubectl cniscope queries the cniscope on each node: why a pod's network setup was slow, which
calls hang now, why nodes give pods no network, and which causes cost the cluster most.

  kubectl cniscope why web-0             verdict, remedy and waterfall of a pod's setups
  kubectl cniscope top -A                causes of slow and failed CNI calls in the last hour
  kubectl cniscope ps -A                 CNI calls in progress on all nodes
  kubectl cniscope doctor                why pods on the nodes get no network
  kubectl cniscope record web-0          a recording, which "cniscope show" draws

It uses your Kubernetes permissions: the Role cniscope-operator in cniscope's namespace. If a
permission is missing, the error names the command that grants it.

The nodes are queried concurrently. If a node does not answer, its name is printed with the
answers of the others, and the exit code is 3.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       thisBuild().String(),
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl cniscope"},
	}
	cmd.SetVersionTemplate("{{.Version}}\n")
	o := newOptions()
	o.flags(cmd.PersistentFlags())
	cmd.AddCommand(whyCmd(o), psCmd(o), doctorCmd(o), topCmd(o), recordCmd(o), debugCmd(o), versionCmd(o), optionsCmd())
	cmd.SetGlobalNormalizationFunc(formerly)
	completions(cmd, o)
	command.Prepare(cmd)
	briefly(cmd)
	return cmd
}

// Exit codes; docs/fleet.md has the same table.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitPartial     = 3
	exitInterrupted = 130
)

type codeError struct {
	error
	code int
}

func exitCode(err error) int {
	if coded, is := errors.AsType[codeError](err); is {
		return coded.code
	}
	if errors.As(err, new(command.Usage)) {
		return exitUsage
	}
	return exitFailed
}

func partial(n digest.Nodes) error {
	if len(n.Missing) == 0 {
		return nil
	}
	var lines []error
	for _, line := range n.Lines() {
		lines = append(lines, errors.New(line))
	}
	if n.Answered == 0 {
		return codeError{errors.Join(lines...), exitFailed}
	}
	return codeError{errors.Join(lines...), exitPartial}
}

var linked, commit, date string

func thisBuild() command.Build { return command.BuildOf("kubectl cniscope", linked, commit, date) }

func versionCmd(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: o.runs(func(cmd *cobra.Command, _ []string) error {
			return thisBuild().Print(cmd.OutOrStdout(), o.format)
		}),
	}
}
