package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/fleet"
	"github.com/cniscope/cniscope/pkg/fleet/digest"
)

func psCmd(o *options) *cobra.Command {
	all, pod := false, ""
	cmd := &cobra.Command{
		Use:   "ps [node/NODE...]",
		Short: "List CNI calls in progress and their waits on all nodes",
		Long: `List the CNI calls in progress in your namespace, oldest first: node, pod, command, plugin, age,
and the current process with the kernel function in which that process waits.`,
		Example: `  kubectl cniscope ps                        pods of your namespace
  kubectl cniscope ps -A                     all pods
  kubectl cniscope ps -A node/node-7         on one node
  kubectl cniscope ps -A -o json | jq '.calls[] | select(.age_ns > 20e9)'`,
		Args: o.nodeArgs,
		RunE: o.runs(func(cmd *cobra.Command, _ []string) error { return ps(cmd, o, all, pod) }),
	}
	cmd.Flags().StringVar(&pod, "pod", "", "only this pod: NAME")
	cmd.Flags().BoolVarP(&all, "all-namespaces", "A", false, "all namespaces")
	return cmd
}

// psDocument is docs/schemas/kubectl-ps.json.
type psDocument struct {
	Schema    string       `json:"schema"`
	Nodes     digest.Nodes `json:"nodes"`
	Namespace string       `json:"namespace,omitempty"`
	Calls     []nodeCall   `json:"calls"`
}

type nodeCall struct {
	Node string `json:"node"`
	control.Call
}

func ps(cmd *cobra.Command, o *options, all bool, pod string) error {
	s, err := o.scoped(cmd, all)
	if err != nil {
		return err
	}
	d := psDocument{Schema: "cniscope.dev/kubectl-ps/v1", Namespace: s.within, Calls: []nodeCall{}}
	d.Nodes, err = s.each(cmd.Context(), s.question(fleet.Calls), func(node string, answer []byte) error {
		var said struct{ Calls digest.List[control.Call] }
		if err := document(answer, &said); err != nil {
			return err
		}
		for _, call := range said.Calls {
			if pod == "" || call.Pod == pod {
				d.Calls = append(d.Calls, nodeCall{node, digest.Call(call)})
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortFunc(d.Calls, func(a, b nodeCall) int {
		return cmp.Or(cmp.Compare(b.Age, a.Age), cmp.Compare(a.Node, b.Node), cmp.Compare(a.PID, b.PID))
	})
	err = o.print(cmd, d, func(out io.Writer) error { return d.text(out, s.about()) })
	return cmp.Or(err, partial(d.Nodes))
}

func (o *options) scoped(cmd *cobra.Command, all bool) (*session, error) {
	c, err := o.connect()
	if err != nil {
		return nil, err
	}
	within := ""
	if !all {
		if within, err = o.namespace(); err != nil {
			return nil, err
		}
	}
	return o.open(cmd.Context(), c, within, cmd.ErrOrStderr())
}

func (d psDocument) text(out io.Writer, about string) error {
	if len(d.Calls) == 0 {
		if d.Nodes.Answered == 0 {
			return nil
		}
		_, err := fmt.Fprintf(out, "no CNI call is in progress on %s (%s)\n", digest.Count(d.Nodes.Answered, "node"), about)
		return err
	}
	calls, nodes := make([]control.Call, len(d.Calls)), make([]string, len(d.Calls))
	for i, c := range d.Calls {
		calls[i], nodes[i] = c.Call, c.Node
	}
	_, err := fmt.Fprintf(out, "%s in progress on %s (%s)\n%s", digest.Count(len(calls), "CNI call"),
		digest.Count(d.Nodes.Answered, "node"), about, control.Table(calls, nodes))
	return err
}
