package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strings"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/command"
	"github.com/cniscope/cniscope/pkg/otlp/otlpjson"
	"github.com/cniscope/cniscope/pkg/replay"
	"github.com/cniscope/cniscope/pkg/show"
	"github.com/cniscope/cniscope/pkg/terminal"
	"github.com/cniscope/cniscope/pkg/trace"
)

func (o showOptions) draw(
	ctx context.Context, out, diagnostics io.Writer, operations iter.Seq[*tracepb.ResourceSpans],
) (found bool, err error) {
	operations = filter(operations, show.Filter{Problems: o.problems && !o.html, Limits: &o.limits})
	if o.fold {
		operations = folded(operations)
	}
	if found = !none(operations); !found && !o.always() {
		return false, nil
	}
	switch {
	case o.otlp != "":
		return found, sendAll(ctx, diagnostics, o.otlp, operations)
	case o.summary:
		return found, o.table(out, show.Collect(operations).Statistics())
	case o.html:
		return found, show.Page(out, operations, show.PageOptions{All: o.all || o.pod != "" && !o.problems, Limits: o.limits})
	case o.format == "json":
		return found, jsonLines(out, operations)
	}
	if err := show.Summary(out, operations, o.look(out)); err != nil {
		return found, err
	}
	return found, show.Waterfalls(out, operations, o.look(out))
}

// always reports whether an empty answer is printed: for a page or document, unless a pod was named.
func (o showOptions) always() bool { return o.pod == "" && (o.html || o.summary && o.format == "json") }

func (o showOptions) table(out io.Writer, s show.Statistics) error {
	if o.format == "json" {
		return command.Indented(out, s)
	}
	return show.Table(out, s, o.look(out))
}

func (o showOptions) look(out io.Writer) show.Options {
	width, known := terminal.Width(out)
	return show.Options{
		Width: width, Wrap: known, All: o.all, Each: o.each, ASCII: terminal.ASCII(os.Getenv), Limits: o.limits,
		Color: terminal.Colors(o.color, out, os.Getenv),
	}
}

func jsonLines(out io.Writer, operations iter.Seq[*tracepb.ResourceSpans]) error {
	for spans := range operations {
		line, err := otlpjson.Lines([]*tracepb.ResourceSpans{spans})
		if err != nil {
			return err
		}
		if _, err := out.Write(line); err != nil {
			return err
		}
	}
	return nil
}

func (o showOptions) ofPod(operations iter.Seq[*tracepb.ResourceSpans]) iter.Seq[*tracepb.ResourceSpans] {
	return filter(operations, show.Filter{Pod: o.pod})
}

func filter(operations iter.Seq[*tracepb.ResourceSpans], f show.Filter) iter.Seq[*tracepb.ResourceSpans] {
	return func(yield func(*tracepb.ResourceSpans) bool) {
		for spans := range operations {
			if f.Wants(spans) && !yield(spans) {
				return
			}
		}
	}
}

func folded(operations iter.Seq[*tracepb.ResourceSpans]) iter.Seq[*tracepb.ResourceSpans] {
	return func(yield func(*tracepb.ResourceSpans) bool) {
		for spans := range operations {
			if !yield(trace.Fold(spans)) {
				return
			}
		}
	}
}

func none(operations iter.Seq[*tracepb.ResourceSpans]) bool {
	for range operations {
		return false
	}
	return true
}

const podsNamed = 10

// nothing fails for a missing pod, else prints a line. all counts operations before filters; where is "in this
// recording".
func (o showOptions) nothing(diagnostics io.Writer, all int, where string, operations iter.Seq[*tracepb.ResourceSpans]) error {
	switch {
	case all == 0:
		fmt.Fprintf(diagnostics, "cniscope: there is no CNI call %s\n", where)
	case o.pod != "" && none(o.ofPod(operations)):
		missing := fmt.Errorf("no call of pod %s %s%s", o.pod, where, others(operations))
		if !o.limits.Set() {
			return missing
		}
		fmt.Fprintf(diagnostics, "cniscope: %v\n", missing)
	case o.problems && !o.limits.Set():
		of := ""
		if o.pod != "" {
			of = " of pod " + o.pod
		}
		fmt.Fprintf(diagnostics, "cniscope: nothing%s was slow, failed or partly unseen %s\n", of, where)
	}
	return nil
}

func (o showOptions) missing(r *replay.Recording) error {
	if r.All == 0 || o.pod == "" {
		return errors.New("it has no CNI call")
	}
	return fmt.Errorf("it has no call of pod %s%s", o.pod, others(r.Operations()))
}

func others(operations iter.Seq[*tracepb.ResourceSpans]) string {
	var names []string
	more := 0
	for spans := range operations {
		for _, name := range show.Pods(spans) {
			switch {
			case slices.Contains(names, name):
			case len(names) < podsNamed:
				names = append(names, name)
			default:
				more++
			}
		}
	}
	if len(names) == 0 {
		return ""
	}
	said := "; it has calls of " + strings.Join(names, ", ")
	if more > 0 {
		said += " and other pods"
	}
	return said
}
