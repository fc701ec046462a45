package main

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cniscope/cniscope/pkg/command"
	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/fleet"
	"github.com/cniscope/cniscope/pkg/fleet/digest"
	"github.com/cniscope/cniscope/pkg/text"
)

func topCmd(o *options) *cobra.Command {
	all, since := false, time.Hour
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Rank the causes of slow and failed CNI calls of all nodes",
		Long: `Rank the causes of slow and failed CNI calls in your namespace in the last hour on all nodes, with
nodes, plugins, the worst call and the remedy.

Each node keeps its last 10,000 pod setups and teardowns, which may be less than an hour.`,
		Example: `  kubectl cniscope top -A                    all pods
  kubectl cniscope top -n shop --since 10m
  kubectl cniscope top -A -o json | jq -r '.causes[] | "\(.operations) \(.name)"'`,
		Args: o.nodeArgs,
		RunE: o.runs(func(cmd *cobra.Command, _ []string) error {
			if since <= 0 {
				return command.Usagef("--since %s: want more than 0, such as 1h or 1d", cmd.Flag("since").Value)
			}
			return top(cmd, o, all, since)
		}),
	}
	cmd.Flags().BoolVarP(&all, "all-namespaces", "A", false, "all namespaces")
	cmd.Flags().DurationVar(&since, "since", since, "look back this far")
	return cmd
}

// topDocument is docs/schemas/kubectl-top.json.
type topDocument struct {
	Schema     string        `json:"schema"`
	Nodes      digest.Nodes  `json:"nodes"`
	Namespace  string        `json:"namespace,omitempty"`
	Since      time.Duration `json:"since_ns"`
	Operations int           `json:"operations"`
	Problems   int           `json:"problems"`
	Causes     []digest.Row  `json:"causes"`
	ByNode     []digest.Row  `json:"by_node"`
	Plugins    []digest.Row  `json:"plugins"`
}

const linesMost = 2000

func top(cmd *cobra.Command, o *options, all bool, since time.Duration) error {
	s, err := o.scoped(cmd, all)
	if err != nil {
		return err
	}
	question := s.question(fleet.Operations, "--problems", "--since", since.String(), "--limit", strconv.Itoa(linesMost))
	var counted digest.Top
	nodes, err := s.each(cmd.Context(), question, func(node string, answer []byte) error {
		var said struct {
			Operations digest.List[control.Line]
			Of         int
		}
		if err := document(answer, &said); err != nil {
			return err
		}
		counted.Add(node, said.Operations, said.Of)
		return nil
	})
	if err != nil {
		return err
	}
	d := topDocument{
		Schema: "cniscope.dev/kubectl-top/v1", Nodes: nodes, Namespace: s.within, Since: since,
		Operations: counted.Of, Problems: counted.Problems,
		Causes: counted.Causes(), ByNode: counted.Nodes(), Plugins: counted.Plugins(),
	}
	err = o.print(cmd, d, func(out io.Writer) error { return d.text(out, s.about()) })
	return cmp.Or(err, partial(d.Nodes))
}

func (d topDocument) text(out io.Writer, about string) error {
	if d.Nodes.Answered == 0 {
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s of %s pod setups and teardowns in the last %s were slow, failed or hung, on %s of %s (%s)\n",
		digest.Number(d.Problems), digest.Number(d.Operations), text.Short(d.Since), digest.Number(len(d.ByNode)),
		digest.Count(d.Nodes.Answered, "node"), about)
	if d.Problems > 0 {
		table(&b, "CAUSE", d.Causes, func(r digest.Row) control.Line { return r.Worst })
		table(&b, "NODE", d.ByNode, nil)
		table(&b, "PLUGIN", d.Plugins, nil)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func table(out *strings.Builder, title string, rows []digest.Row, worst func(digest.Row) control.Line) {
	digest.Table(out, []string{title, "SLOW", "FAILED", "HUNG", "NODES", "TIME", "WORST", "OPERATION"}, rows,
		func(r digest.Row) []string {
			return []string{
				r.Name, strconv.Itoa(r.Slow), strconv.Itoa(r.Failed), strconv.Itoa(r.Hung), strconv.Itoa(r.Nodes),
				text.Round(r.Time).String(), text.Round(r.Worst.Duration).String(), where(r.Worst),
			}
		}, worst)
}

func where(l control.Line) string {
	pod := "outside a pod"
	if l.Pod != "" {
		pod = l.Namespace + "/" + l.Pod
	}
	return fmt.Sprintf("%s on %s", pod, l.Node)
}
