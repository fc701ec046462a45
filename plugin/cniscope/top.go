package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cniscope/cniscope/pkg/command"
	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/fleet/digest"
	"github.com/cniscope/cniscope/pkg/text"
)

func topCmd() *cobra.Command {
	var file optionsFile
	var format string
	since := time.Hour
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Rank the causes of slow and failed CNI calls",
		Long: `Rank the causes of slow and failed CNI calls of the last hour on this node, with their plugins, total
time, worst call and remedy.

top asks the running cniscope, and needs root. It needs no backend and no spool. It counts the last
10,000 pod setups and teardowns since cniscope started, sampled or not.

For many nodes, run kubectl cniscope top.`,
		Example: `  cniscope top
  cniscope top --since 10m
  cniscope top -o json | jq -r '.causes[] | "\(.operations) \(.name)"'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if since <= 0 {
				return command.Usagef("--since %s: want more than 0, such as 1h or 1d", cmd.Flag("since").Value)
			}
			o, err := file.load()
			if err != nil {
				return err
			}
			now := time.Now()
			found, err := memory(o.State.Dir).Operations(cmd.Context(), control.Query{Problems: true, Since: now.Add(-since)})
			if err != nil {
				return err
			}
			d := newTopDocument(found, now.Add(-since))
			if format == "json" {
				return command.Indented(cmd.OutOrStdout(), d)
			}
			return d.text(marked(cmd), now)
		},
	}
	file.flag(cmd)
	cmd.Flags().DurationVar(&since, "since", since, "look back this far")
	formatFlag(cmd, &format)
	return cmd
}

// topDocument is docs/schemas/top.json.
type topDocument struct {
	Schema string `json:"schema"`
	// Since is the requested time, or the later start of the node history.
	Since      time.Time    `json:"since"`
	Operations int          `json:"operations"`
	Problems   int          `json:"problems"`
	Causes     []digest.Row `json:"causes"`
	Plugins    []digest.Row `json:"plugins"`
}

func newTopDocument(found control.Operations, asked time.Time) topDocument {
	var counted digest.Top
	counted.Add("", found.Operations, found.Of)
	since := asked.UTC()
	if found.Since.After(since) {
		since = found.Since
	}
	return topDocument{
		Schema: "cniscope.dev/top/v1", Since: since, Operations: counted.Of, Problems: counted.Problems,
		Causes: counted.Causes(), Plugins: counted.Plugins(),
	}
}

func (d topDocument) text(out io.Writer, now time.Time) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s of %s pod setups and teardowns in the last %s were slow, failed or hung\n",
		digest.Number(d.Problems), digest.Number(d.Operations), max(0, now.Sub(d.Since)).Round(time.Second))
	if d.Problems > 0 {
		topTable(&b, "CAUSE", d.Causes, func(r digest.Row) control.Line { return r.Worst })
		topTable(&b, "PLUGIN", d.Plugins, nil)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func topTable(b *strings.Builder, title string, rows []digest.Row, worst func(digest.Row) control.Line) {
	digest.Table(b, []string{title, "SLOW", "FAILED", "HUNG", "TIME", "WORST", ""}, rows, func(r digest.Row) []string {
		return []string{
			r.Name, strconv.Itoa(r.Slow), strconv.Itoa(r.Failed), strconv.Itoa(r.Hung),
			text.Round(r.Time).String(), text.Round(r.Worst.Duration).String(), podOf(r.Worst),
		}
	}, worst)
}
