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
rows, "✗" failed ones. The second line of each call says what the call spent its time on.

A recording needs neither root nor a backend; "-" is standard input. FILE can also be
a trace of Windows (.etl). show judges a recording by the thresholds in it, or with
--config by those of that file. Very large recordings are cut; a note says where.

With --since, show reads the spool of [export.spool], also while cniscope runs. Only root can
read the spool. It holds the sampled setups and teardowns, exported or not. Without a spool,
show asks the running cniscope, which holds the last slow and failed setups and teardowns in
full. Of the others it holds one line each, which "cniscope why POD" prints.

If the pod of --pod has no call, show lists the pods that have one. The exit code is then 1, or
2 with a limit.

With a limit (--max-…) the exit code is 1 if a call exceeds it, and standard error names
the call and the limit. The exit code is 2 if the limit cannot be checked: no call
matches, or a call cannot be read. A limit also covers calls that are not drawn, such as
lo; --problems draws every call that exceeds a limit. With --pod, a limit covers only the
calls of that pod.

The exit code is 3 if the recording or spool is incomplete.`,
		Example: `  cniscope show incident.rec.gz                          lo and teardown folded unless slow or failed
  cniscope show incident.rec.gz --all                    every call in full
  cniscope show incident.rec.gz --pod shop/web-0         one pod
  cniscope show incident.rec.gz --problems               slow and failed calls only
  cniscope show incident.rec.gz -o json | jq .           OTLP JSON, one line per operation
  cniscope show incident.rec.gz --otlp 127.0.0.1:4317    send the spans to a backend
  cniscope show --since 1h --pod shop/web-0              one pod, from the spool
  cniscope show --summary incident.rec.gz                where the time went, by cause, with remedies
  cniscope show --html incident.rec.gz > incident.html   a page for a ticket: what was slow or failed
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
	flags.StringVar(&o.pod, "pod", "", "only this pod: NAMESPACE/NAME, or NAME")
	flags.BoolVar(&o.problems, "problems", false, "only calls that were slow, failed, incomplete, or exceed a limit")
	flags.BoolVar(&o.all, "all", false, "every call in full: also lo and teardown, and with --html also calls without a problem")
	flags.BoolVar(&o.each, "all-commands", false, "a row or span for every command, also for each of many equal commands")
	flags.BoolVar(&o.fold, "fold-commands", false, "one span for a series of fast, equal commands; default for --otlp and -o json if the recorded node had [trace] fold_commands")
	formatFlag(cmd, &o.format, "otlp")
	flags.Lookup("output").Usage = "text or otlp (OTLP JSON lines; json is the same)"
	flags.StringVar(&o.otlp, "otlp", "", "send the spans to this OTLP gRPC endpoint (HOST:PORT in plain text, or a URL)")
	flags.StringVarP(&o.options, "config", "c", "", "judge by the thresholds of this configuration file; with --since, also read its spool (default with --since: "+defaultOptionsFile()+")")
	flags.DurationVar(&o.last, "since", 0, "read this node's spool, looking back this far, such as 30m or 1d")
	command.Formerly(cmd, "last", "since")
	flags.DurationVar(&o.timeout, "timeout", 0, "stop reading after this duration and show what was read (default "+replay.Timeout.String()+")")
	flags.BoolVar(&o.summary, "summary", false, "tables of all calls: time by cause with remedies, by plugin, command and wait")
	flags.BoolVar(&o.html, "html", false, "write one self-contained HTML page to standard output")
	limitFlags(flags, &o.limits)
	flags.StringVar(&o.spool, "spool", "", "with --since, the spool's directory")
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
