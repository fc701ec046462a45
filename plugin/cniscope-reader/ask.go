package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/cniscope/cniscope/pkg/command"
	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/fleet"
	"github.com/cniscope/cniscope/pkg/otlp/otlpjson"
)

// answering bounds an answer, lest a disconnected client leave a process.
const answering = 30 * time.Second

type question struct {
	what, format           string
	namespace, pod, trace  string
	since, wait, recording time.Duration
	after                  uint64
	limit                  int
	problems               bool
}

func askCmd() *cobra.Command {
	q := question{format: fleet.JSON}
	what := []string{fleet.Calls, fleet.Operations, fleet.Spans, fleet.Node, fleet.Doctor, fleet.Record}
	cmd := &cobra.Command{
		Use:   "ask {" + strings.Join(what, "|") + "}",
		Short: "Answer a query about this node",
		Long: `Answer one query about this node, in JSON on standard output.

  calls        CNI calls in progress                [--namespace --pod]
  operations   node history, one line each          [--namespace --pod --problems --since --after --wait --limit]
  spans        one operation's spans, OTLP          --trace [--format protobuf]
  node         cniscope itself
  doctor       findings of cniscope doctor
  record       a recording that starts now          --for [--namespace --pod]

Exit codes: 0 answered, 1 cniscope does not answer, 2 the arguments are wrong, 6 the node history no longer has
the spans, 7 too many queries at once.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains(what, args[0]) {
				return command.Usagef("ask: want one of %s", strings.Join(what, ", "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			q.what = args[0]
			if q.format != fleet.JSON && (q.format != fleet.Protobuf || q.what != fleet.Spans) {
				return command.Usagef("--format %s: want json, or protobuf for spans", q.format)
			}
			if q.what == fleet.Spans && q.trace == "" {
				return command.Usagef("ask spans: want --trace, the trace_id of an operation")
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), answering+q.wait+q.recording)
			defer cancel()
			return q.answer(ctx, node(), cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVarP(&q.namespace, "namespace", "n", "", "only pods of this namespace")
	f.StringVar(&q.pod, "pod", "", "only this pod")
	f.DurationVar(&q.since, "since", 0, "look back this far (default: the whole node history)")
	f.Uint64Var(&q.after, "after", 0, `only operations after this number, the "next" of an earlier answer`)
	f.DurationVar(&q.wait, "wait", 0, "wait this long for an operation, up to 1m")
	f.IntVar(&q.limit, "limit", 0, "only this many operations, the latest (with --after the earliest)")
	f.BoolVar(&q.problems, "problems", false, "only slow, failed or hung operations")
	f.StringVar(&q.trace, "trace", "", "trace_id of the operation")
	f.DurationVar(&q.recording, "for", 30*time.Second, "how long to record, up to 10m")
	f.StringVar(&q.format, "format", q.format, "json, or protobuf for spans")
	return cmd
}

func (q question) answer(ctx context.Context, node control.Reader, out io.Writer) error {
	switch q.what {
	case fleet.Calls:
		return q.calls(ctx, node, out)
	case fleet.Operations:
		return q.operations(ctx, node, out)
	case fleet.Spans:
		return q.spans(ctx, node, out)
	case fleet.Node:
		n, err := node.Node(ctx)
		return printed(out, n, err)
	case fleet.Doctor:
		found, err := node.Doctor(ctx)
		return raw(out, found, err)
	default:
		return q.record(ctx, node, out)
	}
}

func printed(out io.Writer, document any, err error) error {
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(document)
}

func raw(out io.Writer, document []byte, err error) error {
	if err != nil {
		return err
	}
	_, err = out.Write(document)
	return err
}

func (q question) calls(ctx context.Context, node control.Reader, out io.Writer) error {
	all, err := node.Calls(ctx)
	if err != nil {
		return err
	}
	seen := slices.DeleteFunc(all, func(c control.Call) bool {
		return q.namespace != "" && c.Namespace != q.namespace || q.pod != "" && c.Pod != q.pod
	})
	return printed(out, struct {
		Schema string         `json:"schema"`
		Calls  []control.Call `json:"calls"`
	}{"cniscope.dev/ps/v1", seen}, nil)
}

func (q question) operations(ctx context.Context, node control.Reader, out io.Writer) error {
	found, err := node.Operations(ctx, q.query())
	if err != nil {
		return err
	}
	return printed(out, struct {
		Schema string `json:"schema"`
		control.Operations
	}{"cniscope.dev/operations/v1", found}, nil)
}

func (q question) query() control.Query {
	query := control.Query{
		Namespace: q.namespace, Pod: q.pod, Problems: q.problems, After: q.after, Limit: q.limit,
		Wait: min(q.wait, control.MaxWait),
	}
	if q.since > 0 {
		query.Since = time.Now().Add(-q.since)
	}
	return query
}

func (q question) spans(ctx context.Context, node control.Reader, out io.Writer) error {
	encoded, err := node.Spans(ctx, q.trace)
	if err != nil {
		return err
	}
	if q.format == fleet.Protobuf {
		return raw(out, encoded, nil)
	}
	var spans tracepb.TracesData
	if err := proto.Unmarshal(encoded, &spans); err != nil {
		return fmt.Errorf("read the spans that cniscope remembers: %w", err)
	}
	encoded, err = otlpjson.Lines(spans.ResourceSpans)
	return raw(out, encoded, err)
}

func (q question) record(ctx context.Context, node control.Reader, out io.Writer) error {
	recording, err := node.Record(ctx, min(q.recording, control.MaxRecord))
	if err != nil {
		return err
	}
	defer recording.Close()
	_, err = io.Copy(out, recording)
	return err
}
