package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/cniscope/cniscope/pkg/command"
	"github.com/cniscope/cniscope/pkg/replay"
	"github.com/cniscope/cniscope/pkg/show"
)

func diffCmd() *cobra.Command {
	var o showOptions
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Compare two recordings",
		Long: `Compare two recordings, A from before a change and B from after it. diff compares whole calls,
and in them plugins, commands, waits, causes of time, and the dominant cause. Each of these
has a row: its median time per call, its number per call, and the duration of one. Calls that
lack it do not count.

diff reports only significant changes (Mann-Whitney test). A change is at least 5 % of the time in
its row, and 1 % of the time of the call. Of twenty pairs of recordings without a difference, at
most one shows a change. A difference in too few calls is marked "too few
calls"; ten calls on each side are usually enough. The exit code is 0 with and without
differences. For limits in CI, run "cniscope show --help".`,
		Example: `  cniscope diff before.rec.gz after.rec.gz
  cniscope diff before.rec.gz after.rec.gz -o json | jq .`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.color = colorOf(cmd)
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
				return command.Indented(cmd.OutOrStdout(), c)
			}
			return show.Differences(cmd.OutOrStdout(), c, o.look(cmd.OutOrStdout()))
		},
	}
	cmd.ValidArgsFunction = recordingFiles
	flags := cmd.Flags()
	flags.StringVar(&o.pod, "pod", "", "only this pod: NAMESPACE/NAME, or NAME")
	formatFlag(cmd, &o.format)
	flags.DurationVar(&o.timeout, "timeout", 0, "stop reading after this duration (default "+replay.Timeout.String()+")")
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
