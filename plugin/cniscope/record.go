package main

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/cniscope/cniscope/pkg/command"
	"github.com/cniscope/cniscope/pkg/node"
	"github.com/cniscope/cniscope/pkg/terminal"
)

func recordCmd() *cobra.Command {
	var (
		file      optionsFile
		duration  time.Duration
		overwrite bool
		etl       bool
		quiet     bool
		format    string
	)
	cmd := &cobra.Command{
		Use:   "record FILE|-",
		Short: "Observe this node and write a recording",
		Long: `Observe this node and write every event to FILE, or to standard output (-), until Ctrl-C.
A FILE that ends in .gz is compressed. The recording contains no raw arguments, environment
variables or configurations, and only its owner can read it.

record needs root. If cniscope already runs on this node, record gets the events from that
cniscope.

On Windows, --etl makes Windows itself record processes, host networking (HNS), WMI and
containerd. "cniscope show" draws the file. It contains the command line of every process of
the node.`,
		Example: `  cniscope record incident.rec.gz --for 10m
  cniscope show incident.rec.gz
  cniscope record --etl C:\incident.etl --for 1m`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if duration < 0 {
				return command.Usagef("--for %s: want a duration, such as 10m", cmd.Flag("for").Value)
			}
			if duration > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, duration)
				defer cancel()
			}
			if args[0] == "-" && format == "json" {
				return command.Usagef("a recording goes to standard output: for -o json name a file")
			}
			if args[0] == "-" && terminal.Is(cmd.OutOrStdout()) {
				return command.Usagef("a recording goes to standard output: redirect it to a file")
			}
			if etl {
				return recordETL(ctx, cmd, args[0], overwrite)
			}
			o, err := file.load()
			if err != nil {
				return err
			}
			to := node.Recording{
				Version: version(), Path: args[0], Overwrite: overwrite, Out: cmd.OutOrStdout(), Diagnostics: cmd.ErrOrStderr(),
			}
			if format == "json" {
				to.Done = func(events, operations int) {
					_ = command.Indented(to.Out, recordDocument{"cniscope.dev/record/v1", to.Path, events, operations})
				}
			}
			if quiet {
				o.Log.Level, to.Diagnostics = "error", io.Discard
			}
			return node.Record(ctx, o, to)
		},
	}
	file.flag(cmd)
	formatFlag(cmd, &format)
	cmd.Flags().DurationVar(&duration, "for", 0, "stop after this duration, such as 10m")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print errors only")
	cmd.Flags().BoolVar(&overwrite, "overwrite", false, "replace FILE if it exists")
	cmd.Flags().BoolVar(&etl, "etl", false, "on Windows: record a trace of Windows (.etl)")
	return cmd
}

// recordDocument is docs/schemas/record.json.
type recordDocument struct {
	Schema     string `json:"schema"`
	File       string `json:"file"`
	Events     int    `json:"events"`
	Operations int    `json:"operations"`
}
