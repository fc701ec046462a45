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

	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/fleet"
	"github.com/cniscope/cniscope/pkg/fleet/access"
)

// answering bounds an answer, beyond --wait or --for, so that a disconnected client leaves no process.
const answering = 30 * time.Second

// question is a parsed request.
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
		Short: "Answer a question about this node, as far as the asker may see it",
		Long: `Answer one question about this node, in JSON on standard output.

The first line of standard input is a token of a ServiceAccount, for the audience "` + fleet.Audience + `". A token of
the operator's ServiceAccount sees everything; any other sees the pods of its namespace, without data about
other pods.

  calls        the calls in progress                [--namespace --pod]
  operations   what is remembered, a line each      [--namespace --pod --problems --since --after --wait --limit]
  spans        one operation's spans, OTLP          --trace [--format protobuf]
  node         cniscope itself                      operator only
  doctor       what is wrong with the node          operator only
  record       a recording of what happens now on   --for [--namespace --pod], operator only

It ends with 0 if it has answered, 1 if cniscope does not answer, 2 if the arguments are wrong, 3 without a token that
counts, 4 if the token's owner may not see this, 5 if the API server could not be asked whose it is, 6 if the spans
are not remembered, and 7 if too many ask this node at once.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains(what, args[0]) {
				return usageError{fmt.Errorf("ask: want one of %s", strings.Join(what, ", "))}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			q.what = args[0]
			if q.format != fleet.JSON && (q.format != fleet.Protobuf || q.what != fleet.Spans) {
				return usageError{fmt.Errorf("--format %s: want json, or protobuf for spans", q.format)}
			}
			if q.what == fleet.Spans && q.trace == "" {
				return usageError{fmt.Errorf("ask spans: want --trace, the trace_id of an operation")}
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), answering+q.wait+q.recording)
			defer cancel()
			viewer, err := asker(ctx, cmd.InOrStdin(), review)
			if err != nil {
				return err
			}
			return q.answer(ctx, node(), viewer, cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVarP(&q.namespace, "namespace", "n", "", "of which namespace's pods (default: all that may be seen)")
	f.StringVar(&q.pod, "pod", "", "of which pod")
	f.DurationVar(&q.since, "since", 0, "how far back (default: as far as is remembered)")
	f.Uint64Var(&q.after, "after", 0, `only what came after this number, the "next" of an earlier answer`)
	f.DurationVar(&q.wait, "wait", 0, "wait that long for something to come, a minute at most")
	f.IntVar(&q.limit, "limit", 0, "how many operations at most, the latest (with --after the earliest)")
	f.BoolVar(&q.problems, "problems", false, "only operations that were slow, failed or hang")
	f.StringVar(&q.trace, "trace", "", "trace_id of the operation")
	f.DurationVar(&q.recording, "for", 30*time.Second, "how long to record, ten minutes at most")
	f.StringVar(&q.format, "format", q.format, "json, or protobuf for spans")
	return cmd
}

// asker authenticates the user by the token on the first line of input.
func asker(ctx context.Context, input io.Reader, whose func(context.Context, string) (access.Identity, error)) (access.Viewer, error) {
	token, err := firstLine(ctx, input)
	if err != nil {
		return access.Viewer{}, err
	}
	id, err := whose(ctx, token)
	if err != nil {
		return access.Viewer{}, failure{fmt.Errorf("the API server could not be asked whose the token is: %w", err), fleet.Unchecked}
	}
	return access.Of(id, setting("CNISCOPE_OPERATOR", ""))
}

func (q question) answer(ctx context.Context, node control.Reader, viewer access.Viewer, out io.Writer) error {
	switch q.what {
	case fleet.Node, fleet.Doctor, fleet.Record:
		if err := viewer.Node(q.what); err != nil {
			return err
		}
	}
	namespace, err := viewer.In(q.namespace)
	if err != nil {
		return err
	}
	q.namespace = namespace
	switch q.what {
	case fleet.Calls:
		return q.calls(ctx, node, viewer, out)
	case fleet.Operations:
		return q.operations(ctx, node, viewer, out)
	case fleet.Spans:
		return q.spans(ctx, node, viewer, out)
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
