package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/cniscope/cniscope/pkg/replay"
	"github.com/cniscope/cniscope/pkg/show"
)

func diffCmd() *cobra.Command {
	var o showOptions
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Compare two recordings: what became slower or faster, appeared or vanished",
		Long: `Compare two recordings, A before and B after: calls as a whole, and in them plugins,
commands, waits, where the time went, and the dominant cause. Of each it says how
long there was one in a call that has it (the median), how many there are in a call, and
how long one takes.

Only significant changes are reported: at least 5 % of the row's own time and 1 % of the
call's, and by a Mann-Whitney test, corrected so that of twenty pairs of recordings of the
same thing at most one has a change. A difference in too few calls to tell is marked "too
few calls"; ten on each side are usually enough. The exit code is 0 whatever differs; limits
for a CI are in "cniscope show --help".`,
		Example: `  cniscope diff before.rec.gz after.rec.gz
  cniscope diff before.rec.gz after.rec.gz -o json | jq .`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			var samples [2]*show.Sample
			for i, path := range args {
				var err error
				if samples[i], err = o.sample(cmd.Context(), cmd.ErrOrStderr(), path); err != nil {
					return err
				}
			}
			c := show.Compare(samples[0], samples[1])
			if o.format == "json" {
				return indented(cmd.OutOrStdout(), c)
			}
			return show.Differences(cmd.OutOrStdout(), c, o.look(cmd.OutOrStdout()))
		},
	}
	cmd.ValidArgsFunction = recordingFiles
	flags := cmd.Flags()
	flags.StringVar(&o.pod, "pod", "", "only this pod: NAMESPACE/NAME, or NAME")
	formatFlag(cmd, &o.format)
	flags.DurationVar(&o.timeout, "timeout", 0, "stop reading a recording after this time (default "+replay.Timeout.String()+")")
	colorFlag(cmd, &o.color)
	return cmd
}

func (o showOptions) sample(ctx context.Context, diagnostics io.Writer, path string) (s *show.Sample, err error) {
	defer replay.Guard(path, &err)
	r, err := o.load(ctx, diagnostics, path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	s = show.Collect(o.ofPod(r.Operations()))
	switch {
	case r.Failed() != nil:
		return nil, r.Failed()
	case s.Empty():
		return nil, fmt.Errorf("%s: there is nothing to compare: %w", path, o.missing(r))
	}
	return s, nil
}
