package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/spf13/cobra"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/command"
	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/export"
	"github.com/cniscope/cniscope/pkg/node/destinations"
	"github.com/cniscope/cniscope/pkg/replay"
	"github.com/cniscope/cniscope/pkg/show"
	"github.com/cniscope/cniscope/pkg/terminal"
)

type showOptions struct {
	pod, format, color, otlp, options, spool string
	problems, all, each, fold, summary, html bool
	last, timeout                            time.Duration
	limits                                   show.Limits
}

func showCmd() *cobra.Command {
	var o showOptions
	cmd := &cobra.Command{
		Use:   "show FILE|--since DURATION",
		Short: "Draw a recording or this node's spool as waterfalls",
		Long: `Draw the CNI calls of a recording, or of this node's spool, as waterfalls. "!" marks slow
rows, "✗" failed ones. Below the name of each call stands the cause of its duration. In "1.2s of
2s" the call lasted 2s, and the cause explains 1.2s of that. Rows can overlap; a cause counts each
moment once. A row such as "iptables ×11" lasts from the start of the first run to the end of the
last; "running" is the time in which at least one of them ran, "sum" adds up all runs.

FILE is a recording, a trace of Windows (.etl), or "-" for standard input. It needs no root and
no backend. show uses the thresholds of the recording, or those of --config. It cuts very
large recordings and prints where.

With --since, show reads the spool ([export.spool]), also while cniscope runs. The spool holds
the sampled setups and teardowns, and only root can read it. Without a spool, show asks the
running cniscope for the last slow and failed ones.

If the pod of --pod has no call, show lists the pods that have calls. The exit code is then 1,
or 2 with a limit. A limit is an option --max-…. The exit code is 1 if a call exceeds a limit, and
standard error names both. It is 2 if a limit cannot be checked, because no call matches or a call
cannot be read. Limits also cover calls that are not drawn, such as lo; --problems draws the calls
that exceed one. With --pod, limits cover only the calls of that pod.

The exit code is 3 if the recording or spool is incomplete.`,
		Example: `  cniscope show incident.rec.gz                          lo and teardown folded unless slow or failed
  cniscope show incident.rec.gz --all                    every call, also lo and teardown
  cniscope show incident.rec.gz --pod shop/web-0         one pod
  cniscope show incident.rec.gz --problems               slow and failed calls only
  cniscope show incident.rec.gz -o json | jq .           OTLP JSON, one line per operation
  cniscope show incident.rec.gz --otlp 127.0.0.1:4317    send the spans to a backend
  cniscope show --since 1h --pod shop/web-0              one pod, from the spool
  cniscope show --summary incident.rec.gz                time of all calls by cause, with remedies
  cniscope show --html incident.rec.gz > incident.html   a page of slow and failed calls for a ticket
  cniscope show ci.rec.gz --problems --max-call 500ms --max-commands 20`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.color = colorOf(cmd)
			if o.format == "otlp" {
				o.format = "json"
			}
			if err := errors.Join(o.check(), o.checkLast(args, cmd.Flags().Changed), checkLimits(o.limits, cmd.Flags().Changed)); err != nil {
				return err
			}
			if o.html && terminal.Is(cmd.OutOrStdout()) {
				return command.Usagef("--html writes a page to standard output: redirect it to a file, such as > page.html")
			}
			if o.last > 0 {
				return o.unchecked(showLast(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), o))
			}
			return o.unchecked(showFile(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), args[0], o))
		},
	}
	cmd.ValidArgsFunction = recordingFiles
	flags := cmd.Flags()
	flags.StringVar(&o.pod, "pod", "", "draw only the calls of this pod: NAMESPACE/NAME, or NAME")
	flags.BoolVar(&o.problems, "problems", false, "draw only calls that are slow, failed or incomplete, or exceed a limit")
	flags.BoolVar(&o.all, "all", false, "draw every call: also lo and teardown; with --html also calls without a problem")
	flags.BoolVar(&o.each, "all-commands", false, "draw or export each command, and fold no series of equal commands")
	flags.BoolVar(&o.fold, "fold-commands", false, "draw or export a series of fast, equal commands as one (default for --otlp and -o otlp if the recorded node set [trace] fold_commands)")
	formatFlag(cmd, &o.format, "otlp")
	flags.Lookup("output").Usage = "text or otlp (OTLP JSON, a line per setup or teardown); json is the same as otlp, with --summary a JSON summary"
	flags.StringVar(&o.otlp, "otlp", "", "send the spans to this OTLP endpoint: HOST:PORT, or a URL; a path means HTTP")
	flags.StringVarP(&o.options, "config", "c", "", "use the thresholds of this configuration file, and with --since its spool (default with --since: "+defaultOptionsFile()+")")
	flags.DurationVar(&o.last, "since", 0, "read this node's spool, from this long ago until now, such as 30m or 1d")
	command.Formerly(cmd, "last", "since")
	flags.DurationVar(&o.timeout, "timeout", 0, "stop reading after this duration, and draw the part that was read (default "+replay.Timeout.String()+")")
	flags.BoolVar(&o.summary, "summary", false, "print tables of all calls: their time by cause, with remedies, and by plugin, command and wait")
	flags.BoolVar(&o.html, "html", false, "write one self-contained HTML page to standard output")
	limitFlags(flags, &o.limits)
	flags.StringVar(&o.spool, "spool", "", "directory of the spool that --since reads")
	return cmd
}

func (o showOptions) check() error {
	if o.timeout < 0 {
		return command.Usagef("--timeout %s: want a duration, such as 1m", o.timeout)
	}
	if asked := count(o.html, o.summary, o.otlp != ""); asked > 1 || o.html && o.format == "json" {
		return command.Usagef("choose one of --html, --summary, --otlp and -o json; " +
			"only --summary and -o json go together")
	}
	return nil
}

func count(all ...bool) (n int) {
	for _, is := range all {
		if is {
			n++
		}
	}
	return n
}

func showFile(ctx context.Context, out, diagnostics io.Writer, path string, o showOptions) (err error) {
	defer replay.Guard(path, &err)
	r, err := o.load(ctx, diagnostics, path)
	if err != nil {
		return err
	}
	defer r.Close()
	if spans := o.otlp != "" || o.format == "json" && !o.summary; spans && r.Fold && !o.each {
		o.fold = true
	}
	operations := o.ofPod(r.Operations())
	found, err := o.draw(ctx, out, diagnostics, operations)
	if err = errors.Join(err, r.Failed()); err != nil {
		return err
	}
	if !found {
		if err := o.nothing(diagnostics, r.All, "in this recording", r.Operations()); err != nil {
			return err
		}
	}
	if err = o.hold(diagnostics, operations, r.Incomplete()); err == nil && r.Incomplete() != nil {
		err = incompleteError{fmt.Errorf("recording %s is incomplete; see above", path)}
	}
	return errors.Join(err, r.Failed())
}

func (o showOptions) load(ctx context.Context, diagnostics io.Writer, path string) (*replay.Recording, error) {
	r, err := replay.Load(ctx, path, replay.Options{Timeout: o.timeout, Judge: o.options})
	if err != nil {
		return nil, err
	}
	for _, said := range r.Remarks() {
		fmt.Fprintf(diagnostics, "cniscope: %s\n", said)
	}
	return r, nil
}

func sendAll(ctx context.Context, diagnostics io.Writer, endpoint string, operations iter.Seq[*tracepb.ResourceSpans]) error {
	o, err := config.Parse("--otlp", fmt.Appendf(nil, "[export.otlp]\nendpoint = %q\ninsecure = true\n", endpoint))
	if err != nil {
		return command.Usagef("%w", err)
	}
	exporter, err := destinations.OpenOTLP(o.Export)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	sent := 0
	for spans := range operations {
		if err := export.Send(ctx, exporter, []*tracepb.ResourceSpans{spans}); err != nil {
			return fmt.Errorf("cannot send to %s (%d traces sent): %w; start an OTLP receiver there (HOST:PORT means gRPC, "+
				"http://HOST:4318/v1/traces means HTTP)", endpoint, sent, err)
		}
		sent++
	}
	fmt.Fprintf(diagnostics, "sent %d traces to %s\n", sent, endpoint)
	return exporter.Shutdown(ctx)
}
