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
	_ "k8s.io/client-go/plugin/pkg/client/auth" // all login methods
	"k8s.io/klog/v2"
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

func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	meant := ""
	if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
		meant = "; did you mean " + strings.Join(similar, " or ") + "?"
	}
	return usageError{fmt.Errorf("unknown command %q%s\nTry 'kubectl cniscope --help'", args[0], meant)}
}

func rootCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "kubectl-cniscope",
		Short: "Ask a cluster why its pods' networks are slow",
		Long: `kubectl cniscope asks the cniscope on each node what it has seen: why a pod's network took
so long, what hangs now, what is wrong with nodes, and what costs a whole fleet most.

  kubectl cniscope why web-0             where a pod's seconds went, and what to do
  kubectl cniscope top                   the last hour's slow and failed calls, by cause, node, plugin
  kubectl cniscope ps -A                 CNI calls in progress, on all nodes
  kubectl cniscope doctor -A             what is wrong with the nodes, findings that are alike together
  kubectl cniscope record web-0          a recording that "cniscope show" draws

It uses your Kubernetes permissions: the Role cniscope-operator in cniscope's namespace. If a right
is missing, the error names the command that grants it.

The nodes are queried concurrently. If a node does not answer, its name is printed with the
answers of the others, and the exit code is 3.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          unknownCommand,

		SuggestionsMinimumDistance: 2,

		RunE:        func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		Version:     version(),
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl cniscope"},
	}
	cmd.SetVersionTemplate("{{.Version}}\n")
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	o := newOptions()
	o.flags(cmd.PersistentFlags())
	cmd.AddCommand(whyCmd(o), psCmd(o), doctorCmd(o), topCmd(o), recordCmd(o), versionCmd(o))
	completions(cmd, o)
	return cmd
}
