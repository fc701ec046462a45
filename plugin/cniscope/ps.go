package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/cniscope/cniscope/pkg/command"
	"github.com/cniscope/cniscope/pkg/control"
)

func psCmd() *cobra.Command {
	var file optionsFile
	var format, namespace, pod string
	cmd := &cobra.Command{
		Use:   "ps",
		Short: "List the CNI calls in progress and what each waits for",
		Long: `List the CNI calls in progress on this node: pod, command, plugin, age, and the current
process with the kernel function in which that process waits.

ps asks the running cniscope, and needs root.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := file.load()
			if err != nil {
				return err
			}
			calls, err := control.Client{Dir: o.State.Dir}.Calls(cmd.Context())
			if err != nil {
				return err
			}
			calls = slices.DeleteFunc(calls, func(c control.Call) bool {
				return pod != "" && c.Pod != pod || namespace != "" && c.Namespace != namespace
			})
			if format == "json" {
				return command.Indented(cmd.OutOrStdout(), psDocument{"cniscope.dev/ps/v1", append([]control.Call{}, calls...)})
			}
			return list(marked(cmd), calls)
		},
	}
	file.flag(cmd)
	formatFlag(cmd, &format)
	cmd.Flags().StringVar(&pod, "pod", "", "only this pod: NAME")
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "only pods of this namespace")
	return cmd
}

// psDocument is docs/schemas/ps.json.
type psDocument struct {
	Schema string         `json:"schema"`
	Calls  []control.Call `json:"calls"`
}

func list(out io.Writer, calls []control.Call) error {
	if len(calls) == 0 {
		_, err := fmt.Fprintln(out, "no CNI call is in progress")
		return err
	}
	_, err := io.WriteString(out, control.Table(calls, nil))
	return err
}
