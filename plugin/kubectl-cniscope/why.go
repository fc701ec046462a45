package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/cniscope/cniscope/pkg/command"
	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/fleet"
	"github.com/cniscope/cniscope/pkg/fleet/cluster"
	"github.com/cniscope/cniscope/pkg/fleet/digest"
	"github.com/cniscope/cniscope/pkg/fleet/fanout"
	"github.com/cniscope/cniscope/pkg/otlp/otlpjson"
	"github.com/cniscope/cniscope/pkg/show"
	"github.com/cniscope/cniscope/pkg/terminal"
	"github.com/cniscope/cniscope/pkg/text"
)

func whyCmd(o *options) *cobra.Command {
	w := why{options: o, last: 10}
	cmd := &cobra.Command{
		Use:   "why POD",
		Short: "Explain why a pod's network setup was slow or failed",
		Long: `Explain why a pod's network setup was slow or failed. why prints the pod's Events, then each setup
and teardown that the pod's node remembers, with verdict and remedy. It draws slow and failed ones as
"cniscope show" does.

For a deleted pod, why asks all nodes. Events need the role view, and the rest needs the Role
cniscope-operator in cniscope's namespace. If you lack one of them, why names it and prints the rest.`,
		Example: `  kubectl cniscope why web-0
  kubectl cniscope why shop/web-0            the same as -n shop
  kubectl cniscope why web-0 -o json | jq -r '.operations[-1].verdict'`,
		Args: cobra.ExactArgs(1),
		RunE: o.runs(func(cmd *cobra.Command, args []string) error {
			if w.last < 1 {
				return command.Usagef("--limit %d: want 1 or more", w.last)
			}
			return w.run(cmd, args[0])
		}),
	}
	cmd.Flags().IntVar(&w.last, "limit", w.last, "show only this many setups and teardowns, the newest")
	return cmd
}

type why struct {
	*options
	last int
}

// whyDocument is docs/schemas/kubectl-why.json.
type whyDocument struct {
	Schema     string            `json:"schema"`
	Namespace  string            `json:"namespace"`
	Pod        string            `json:"pod"`
	Node       string            `json:"node,omitempty"`
	Phase      string            `json:"phase,omitempty"`
	Events     []cluster.Event   `json:"events"`
	Operations []control.Line    `json:"operations"`
	Spans      []json.RawMessage `json:"spans"`
	Nodes      digest.Nodes      `json:"nodes"`

	gone   bool   // unknown to the API server
	remark string // explains what is missing
	drawn  []*tracepb.ResourceSpans
}

func (w *why) run(cmd *cobra.Command, name string) error {
	namespace, pod, err := w.named(name)
	if err != nil {
		return err
	}
	c, err := w.connect()
	if err != nil {
		return err
	}
	d := &whyDocument{
		Schema: "cniscope.dev/kubectl-why/v1", Namespace: namespace, Pod: pod,
		Events: []cluster.Event{}, Operations: []control.Line{}, Spans: []json.RawMessage{}, Nodes: digest.Nodes{}.Sorted(),
	}
	missing := d.fromAPI(cmd.Context(), c)
	if errors.Is(missing, cluster.ErrUnreachable) {
		return missing
	}
	if d.remark == "" && cmd.Context().Err() == nil {
		s, err := w.open(cmd.Context(), c, namespace, cmd.ErrOrStderr())
		if err == nil {
			err = w.fromNodes(cmd.Context(), s, d)
		}
		missing = errors.Join(missing, err)
	}
	if err := cmd.Context().Err(); err != nil {
		return err
	}
	err = w.print(cmd, d, func(io.Writer) error { return w.text(cmd.OutOrStdout(), d) }) // which knows the terminal
	return cmp.Or(err, d.verdict(missing))
}

func (o *options) named(name string) (namespace, pod string, err error) {
	if namespace, err = o.namespace(); err != nil {
		return "", "", err
	}
	before, after, both := strings.Cut(name, "/")
	switch {
	case !both:
		return namespace, name, nil
	case before == "" || after == "" || strings.Contains(after, "/"):
		return "", "", command.Usagef("%q: want POD or NAMESPACE/POD", name)
	case slices.Contains([]string{"pod", "pods", "po"}, before):
		return namespace, after, nil
	}
	return before, after, nil
}

func (d *whyDocument) fromAPI(ctx context.Context, c *cluster.Cluster) error {
	pod, err := c.Pod(ctx, d.Namespace, d.Pod)
	uid := ""
	switch {
	case errors.Is(err, cluster.ErrUnreachable):
		return err
	case cluster.NotFound(err):
		d.gone, err = true, nil
	case err == nil:
		d.Node, d.Phase = pod.Spec.NodeName, string(pod.Status.Phase)
		if pod.Annotations[corev1.MirrorPodAnnotationKey] == "" { // Events of a mirror pod have another uid
			uid = string(pod.UID)
		}
		switch {
		case pod.Spec.HostNetwork:
			d.remark = "It has the node's own network (hostNetwork): no CNI plugin runs for it."
		case d.Node == "":
			d.remark = "It is on no node yet, so nothing has set up its network: its Events say what it waits for."
		}
	}
	events, unread := c.Events(ctx, d.Namespace, d.Pod, uid)
	d.Events = append(d.Events, events...)
	return errors.Join(err, unread)
}

func (w *why) fromNodes(ctx context.Context, s *session, d *whyDocument) error {
	s.within = d.Namespace
	if d.Node != "" {
		r, err := s.reader(d.Node)
		if err != nil {
			return err
		}
		s.readers = []cluster.Reader{r}
	}
	question := s.question(fleet.Operations, "--pod", d.Pod, "--limit", strconv.Itoa(w.last))
	nodes, err := s.each(ctx, question, func(node string, answer []byte) error {
		var said operations
		if err := document(answer, &said); err != nil {
			return err
		}
		for _, line := range said.Operations {
			line = digest.Line(line)
			line.Node = node
			d.Operations = append(d.Operations, line)
		}
		return nil
	})
	if d.Nodes = nodes; err != nil {
		return err
	}
	slices.SortStableFunc(d.Operations, func(a, b control.Line) int { return a.Time.Compare(b.Time) })
	d.Operations = d.Operations[max(0, len(d.Operations)-w.last):]
	return d.whole(ctx, s)
}

const wholeMost = 3

func (d *whyDocument) whole(ctx context.Context, s *session) error {
	var wanted []control.Line
	setup := false
	for _, line := range slices.Backward(d.Operations) {
		if line.Result == control.Late {
			continue
		}
		first := line.Command == "ADD" && !setup
		setup = setup || first
		if line.TraceID != "" && line.Result != control.Hung && (line.Result != control.Ordinary || first) &&
			len(wanted) < wholeMost {
			wanted = append(wanted, line)
		}
	}
	slices.Reverse(wanted)
	answers := map[string][]byte{}
	ask := func(ctx context.Context, line control.Line) ([]byte, error) {
		r, err := s.reader(line.Node)
		if err != nil {
			return nil, err
		}
		return s.Answer(ctx, r, []string{fleet.Spans, "--format", fleet.Protobuf, "--trace", line.TraceID}, answerMost)
	}
	var failed error
	for line, answer := range fanout.Ask(ctx, wanted, s.limits, ask) {
		switch said, is := errors.AsType[*cluster.AskError](answer.Err); {
		case answer.Err == nil:
			answers[line.TraceID] = answer.Value
		case is && said.Code == fleet.NotRemembered: // only its line is known
		default:
			failed = errors.Join(failed, fmt.Errorf("the spans of trace %s: node %s: %w", line.TraceID, line.Node, answer.Err))
		}
	}
	for _, line := range wanted {
		if answer := answers[line.TraceID]; answer != nil {
			spans, err := digest.Spans(answer)
			failed = errors.Join(failed, err)
			d.drawn = append(d.drawn, spans...)
		}
	}
	lines, err := otlpjson.Lines(d.drawn)
	for line := range bytes.Lines(lines) {
		d.Spans = append(d.Spans, line)
	}
	return cmp.Or(ctx.Err(), errors.Join(failed, err))
}

func (d *whyDocument) verdict(missing error) error {
	missing = errors.Join(missing, partial(d.Nodes))
	switch {
	case missing == nil && d.Phase == "" && len(d.Operations) == 0 && len(d.Events) == 0:
		return fmt.Errorf("pod %s/%s: the API server knows none of this name, and no node remembers one", d.Namespace, d.Pod)
	case missing == nil:
		return nil
	case len(d.Operations) == 0 && len(d.Events) == 0:
		return codeError{missing, exitFailed}
	}
	return codeError{missing, exitPartial}
}

func (d *whyDocument) title() string {
	said := d.Namespace + "/" + d.Pod
	switch {
	case d.Node != "":
		return said + " on " + d.Node + ", " + d.Phase
	case d.Phase != "":
		return said + ", " + d.Phase
	case d.gone:
		return said + ", not found in the API server; it may have been deleted"
	}
	return said // no answer from the API server
}

func result(l control.Line) string {
	call := strings.TrimSpace(l.Command + " " + l.IfName)
	took := text.Round(l.Duration).String()
	switch l.Result {
	case control.Ordinary:
		return fmt.Sprintf("%s  ordinary: %s", call, took)
	case control.Late:
		return fmt.Sprintf("first connection LATE: %s after the %s", took, call)
	case control.Hung:
		return fmt.Sprintf("%s  HUNG for %s", call, took)
	}
	if l.Duration == 0 { // no plugin ran
		return fmt.Sprintf("%s  %s", call, strings.ToUpper(string(l.Result)))
	}
	return fmt.Sprintf("%s  %s: %s", call, strings.ToUpper(string(l.Result)), took)
}

const stamp = "2006-01-02 15:04:05Z"

func (w *why) text(out io.Writer, d *whyDocument) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", d.title())
	if len(d.Events) > 0 {
		b.WriteString("\nEvents\n")
	}
	for _, e := range d.Events {
		fmt.Fprintf(&b, "  %s  %s %s: %s", e.Time.UTC().Format(stamp), e.Type, e.Reason, e.Message)
		if e.Count > 1 {
			fmt.Fprintf(&b, " (%d times)", e.Count)
		}
		b.WriteByte('\n')
	}
	if d.remark != "" {
		fmt.Fprintf(&b, "\n%s\n", d.remark)
	}
	d.operations(&b)
	width, known := terminal.Width(out)
	look := show.Options{
		Width: width, Wrap: known, All: true, ASCII: terminal.ASCII(os.Getenv),
		Color: terminal.Colors(w.color, out, os.Getenv),
	}
	if _, err := io.WriteString(show.Writer(out, look.ASCII, look.Color), b.String()); err != nil || len(d.drawn) == 0 {
		return err
	}
	if _, err := io.WriteString(out, "\n"); err != nil {
		return err
	}
	return show.Waterfalls(out, slices.Values(d.drawn), look)
}

func (d *whyDocument) operations(b *strings.Builder) {
	switch {
	case len(d.Operations) > 0:
		b.WriteString("\nNetwork\n")
	case d.Nodes.Answered > 0:
		fmt.Fprintf(b,
			"\nNo node history has a CNI call of this pod: it holds the last 10,000 pod setups and teardowns "+
				"since cniscope started.\n")
	}
	for _, l := range d.Operations {
		on := ""
		if d.Node == "" {
			on = "  on " + l.Node
		}
		explain(b, l, on)
	}
}

func explain(b *strings.Builder, l control.Line, on string) {
	fmt.Fprintf(b, "  %s  %s%s\n", l.Time.UTC().Format(stamp), result(l), on)
	digest.Explain(b, "  ", l)
}
