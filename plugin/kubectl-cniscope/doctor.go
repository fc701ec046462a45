package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cniscope/cniscope/pkg/command"
	"github.com/cniscope/cniscope/pkg/fleet"
	"github.com/cniscope/cniscope/pkg/fleet/digest"
)

func doctorCmd(o *options) *cobra.Command {
	all := false
	cmd := &cobra.Command{
		Use:   "doctor [NODE...|--all-nodes]",
		Short: "Report why pods on the nodes get no network",
		Long: `Report what prevents pods on each node from getting a network, and what soon will. doctor
groups similar findings and lists the affected nodes, with the remedy and the first node's
evidence. Problems (✗) come first, then warnings (!), then notes (·). Without NODE it asks
all nodes.

A node examines itself up to twice a minute, so an answer may be 30 s old.

The exit code is 0 if every node answered and nothing was found. It is 1 if a problem or a warning was
found, and 3 if nothing was found but a node did not answer or could not make a check.`,
		Example: `  kubectl cniscope doctor
  kubectl cniscope doctor node-7 node-9
  kubectl cniscope doctor -o json | jq -r '.findings[] | "\(.nodes | length) \(.summary)"'`,
		Args: func(_ *cobra.Command, args []string) error {
			if all && len(args)+len(o.nodes) > 0 {
				return command.Usagef("choose one of node names and --all-nodes")
			}
			return nil
		},
		RunE: o.runs(func(cmd *cobra.Command, args []string) error {
			for _, node := range args {
				o.nodes = append(o.nodes, strings.TrimPrefix(node, "node/"))
			}
			if !cmd.Flags().Changed("node-timeout") {
				o.limits.Patience = doctorPatience
			}
			return examine(cmd, o)
		}),
	}
	cmd.Flags().BoolVar(&all, "all-nodes", false, "all nodes (default)")
	cmd.Flags().BoolVarP(&all, "all", "A", false, "")
	cmd.Flags().Lookup("all").Hidden = true
	return cmd
}

const doctorPatience = 20 * time.Second

// doctorDocument is docs/schemas/kubectl-doctor.json.
type doctorDocument struct {
	Schema    string             `json:"schema"`
	Nodes     digest.Nodes       `json:"nodes"`
	Findings  []digest.Finding   `json:"findings"`
	Unchecked []digest.Unchecked `json:"unchecked"`
	Left      int                `json:"left,omitempty"`
}

func examine(cmd *cobra.Command, o *options) error {
	s, err := o.scoped(cmd, true)
	if err != nil {
		return err
	}
	return s.examine(cmd)
}

func (s *session) examine(cmd *cobra.Command) error {
	var findings digest.Findings
	nodes, err := s.each(cmd.Context(), s.question(fleet.Doctor), func(node string, answer []byte) error {
		report, err := digest.UnmarshalReport(answer)
		if err == nil {
			findings.Add(node, report)
		}
		return err
	})
	if err != nil {
		return err
	}
	d := doctorDocument{"cniscope.dev/kubectl-doctor/v1", nodes, findings.Sorted(), findings.Unmade(), findings.Left}
	return cmp.Or(s.print(cmd, d, d.text), d.verdict(findings.Count()))
}

func (d doctorDocument) verdict(findings int) error {
	missing := partial(d.Nodes)
	switch {
	case findings > 0:
		return codeError{errors.Join(errors.New(digest.Count(findings, "finding")), missing), exitFailed}
	case missing != nil:
		return missing
	case len(d.Unchecked) > 0:
		return codeError{errors.New("nothing was found, but not every check could be made"), exitPartial}
	}
	return nil
}

const namesMost = 10 // of a finding; JSON has all

func (d doctorDocument) text(out io.Writer) error {
	if d.Nodes.Answered == 0 {
		return nil
	}
	marks := map[digest.Level]string{digest.Problem: "✗", digest.Warning: "!", digest.Note: "·"}
	var b strings.Builder
	for _, f := range d.Findings {
		fmt.Fprintf(&b, "%s %s: %s: %s\n", marks[f.Level], d.of(f.Nodes), f.Check, f.Summary)
		fmt.Fprintf(&b, "    on %s\n", digest.Some(f.Nodes, namesMost))
		if len(f.Nodes) > 1 && (f.Differs || len(f.Evidence) > 0) {
			fmt.Fprintf(&b, "    as %s has it:\n", f.Nodes[0])
		}
		for _, e := range f.Evidence {
			fmt.Fprintf(&b, "    %s\n", e)
		}
		for _, r := range f.Remedy {
			fmt.Fprintf(&b, "  → %s\n", r)
		}
		b.WriteByte('\n')
	}
	for _, u := range d.Unchecked {
		fmt.Fprintf(&b, "? %s: %s: could not check: %s\n", d.of(u.Nodes), u.Check, u.Reason)
	}
	if d.Left > 0 {
		fmt.Fprintf(&b, "… and %s beyond 500 kinds; examine fewer nodes at once (doctor NODE...)\n",
			digest.Count(d.Left, "finding"))
	}
	if len(d.Findings) == 0 {
		fmt.Fprintf(&b, "✓ nothing found on %s\n", digest.Count(d.Nodes.Answered, "node"))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func (d doctorDocument) of(nodes []string) string {
	return fmt.Sprintf("%s of %s", digest.Number(len(nodes)), digest.Count(d.Nodes.Answered, "node"))
}
