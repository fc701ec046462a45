package main

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/replay"
	"github.com/cniscope/cniscope/pkg/show"
)

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
