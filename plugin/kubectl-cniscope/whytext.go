package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/fleet/digest"
	"github.com/cniscope/cniscope/pkg/show"
	"github.com/cniscope/cniscope/pkg/terminal"
)

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
