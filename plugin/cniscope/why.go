package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cniscope/cniscope/pkg/command"
	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/fleet/digest"
	"github.com/cniscope/cniscope/pkg/show"
	"github.com/cniscope/cniscope/pkg/text"
)

func whyCmd() *cobra.Command {
	w := why{last: 10}
	cmd := &cobra.Command{
		Use:   "why POD",
		Short: "Explain why a pod's network setup was slow",
		Long: `Explain why the network setup of a pod on this node was slow or failed. why lists the pod's setups
and teardowns, earliest first, and its calls in progress. It draws slow and failed ones with verdict
and remedy. "cniscope show --help" describes these drawings.

why asks the running cniscope. It needs root, but no backend and no spool. cniscope keeps the last
10,000 setups and teardowns since its start, sampled or not (the node history): a line of each, and
drawings of the last slow and failed ones. A pod with hostNetwork has no network setup.

From another machine, run kubectl cniscope why.`,
		Example: `  cniscope why shop/web-0
  cniscope why web-0                         pods web-0 of all namespaces
  cniscope why shop/web-0 -o json | jq -r '.operations[-1].verdict'`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if w.last < 1 {
				return command.Usagef("--limit %d: want 1 or more", w.last)
			}
			w.color = colorOf(cmd)
			return w.run(cmd.Context(), cmd.OutOrStdout(), args[0])
		},
	}
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		o, err := w.file.load()
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		pods, _ := latest(cmd.Context(), memory(o.State.Dir)) // none if cniscope does not run
		return pods, cobra.ShellCompDirectiveNoFileComp
	}
	w.file.flag(cmd)
	cmd.Flags().IntVar(&w.last, "limit", w.last, "list only the newest setups and teardowns, up to this number")
	command.Formerly(cmd, "last", "limit")
	cmd.Flags().DurationVar(&w.since, "since", 0, "list only setups and teardowns that ended in the last 30m, 1d or other duration")
	formatFlag(cmd, &w.format)
	return cmd
}

type why struct {
	file          optionsFile
	last          int
	since         time.Duration
	format, color string
}

// whyDocument is docs/schemas/why.json.
type whyDocument struct {
	Schema string `json:"schema"`
	// Since is the start of the node history; Operations are the pod's, earliest first.
	Since      time.Time      `json:"since"`
	Operations []control.Line `json:"operations"`
	Calls      []control.Call `json:"calls"`
}

func memory(dir string) control.Reader {
	return control.Reader{Path: control.Address(dir)}
}

func (w why) run(ctx context.Context, out io.Writer, name string) error {
	o, err := w.file.load()
	if err != nil {
		return err
	}
	namespace, pod := podNamed(name)
	r := memory(o.State.Dir)
	q := control.Query{Namespace: namespace, Pod: pod, Limit: w.last}
	if w.since > 0 {
		q.Since = time.Now().Add(-w.since)
	}
	found, err := r.Operations(ctx, q)
	if err != nil {
		return err
	}
	calls, err := r.Calls(ctx)
	if err != nil {
		return err
	}
	calls = slices.DeleteFunc(calls, func(c control.Call) bool {
		return c.Pod != pod || namespace != "" && c.Namespace != namespace
	})
	if len(found.Operations)+len(calls) == 0 {
		return w.unknown(ctx, r, name, found.Since)
	}
	if w.format == "json" {
		return command.Indented(out, whyDocument{"cniscope.dev/why/v1", found.Since, found.Operations, append([]control.Call{}, calls...)})
	}
	for i, l := range found.Operations {
		over := func(later control.Line) bool { return later.Sandbox == l.Sandbox && later.TraceID == l.TraceID }
		if l.Result == control.Hung && slices.ContainsFunc(found.Operations[i+1:], over) {
			continue // its end says more
		}
		if err := w.draw(ctx, out, r, l); err != nil {
			return err
		}
	}
	if len(calls) == 0 {
		return nil
	}
	if _, err := fmt.Fprintf(out, "in progress\n"); err != nil {
		return err
	}
	return list(out, calls)
}

func podNamed(name string) (namespace, pod string) {
	if before, after, both := strings.Cut(name, "/"); both {
		return before, after
	}
	return "", name
}

func (w why) unknown(ctx context.Context, r control.Reader, name string, since time.Time) error {
	pods, err := latest(ctx, r)
	if err != nil {
		return err
	}
	said := ""
	if len(pods) > 0 {
		said = "; the latest pods here: " + digest.Some(pods, podsNamed)
	}
	return fmt.Errorf("no CNI call of pod %s since %s: the pod may be on another node, or use hostNetwork%s; if the sandbox "+
		"does not start, run cniscope doctor", text.Clean(name, text.Bound), since.UTC().Format(time.DateTime+"Z"), said)
}

func latest(ctx context.Context, r control.Reader) (pods []string, err error) {
	all, err := r.Operations(ctx, control.Query{Limit: 1000})
	for _, l := range slices.Backward(all.Operations) {
		if pod := podOf(l); l.Pod != "" && !slices.Contains(pods, pod) {
			pods = append(pods, pod)
		}
	}
	return pods, err
}

func podOf(l control.Line) string {
	return cmp.Or(strings.Trim(l.Namespace+"/"+l.Pod, "/"), "no pod")
}

func (w why) draw(ctx context.Context, out io.Writer, r control.Reader, l control.Line) error {
	look := showOptions{color: w.color, all: l.Command == "DEL" || l.IfName == "lo"}.look(out)
	if l.Call() != l.Command && (l.Result == control.Slow || l.Result == control.Failed) {
		raw, err := r.Spans(ctx, l.TraceID)
		if err == nil {
			spans, err := digest.Spans(raw)
			if err != nil {
				return err
			}
			return show.Waterfalls(out, slices.Values(spans), look)
		}
		if !errors.Is(err, control.ErrNotRemembered) {
			return err
		}
	}
	_, err := io.WriteString(show.Writer(out, look.ASCII, look.Color), describe(l))
	return err
}

func describe(l control.Line) string {
	var b strings.Builder
	call, took := l.Call(), text.Round(l.Duration)
	switch {
	case l.Result == control.Late:
		fmt.Fprintf(&b, "%s  first connection late: %s after %s\n", podOf(l), took, call)
	case took == 0: // no plugin ran
		fmt.Fprintf(&b, "%s  %s  %s\n", podOf(l), call, l.Result)
	default:
		fmt.Fprintf(&b, "%s  %s  %s: %s\n", podOf(l), call, l.Result, took)
	}
	if says := cmp.Or(l.Verdict, l.Error); says != "" {
		fmt.Fprintf(&b, "  %s\n", says)
	}
	if l.Remedy != "" {
		b.WriteString(text.Steps("  ", l.Remedy))
	}
	details := []string{l.Time.UTC().Format("2006-01-02 15:04:05.000Z")}
	for _, d := range []struct{ name, value string }{
		{"node", l.Node}, {"network", l.Network}, {"plugin", l.Plugin}, {"sandbox", l.Sandbox[:min(12, len(l.Sandbox))]}, {"trace", l.TraceID},
	} {
		if d.value != "" {
			details = append(details, d.name+" "+d.value)
		}
	}
	fmt.Fprintf(&b, "  %s\n\n", strings.Join(details, " · "))
	return b.String()
}
