package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/cniscope/cniscope/pkg/command"
	"github.com/cniscope/cniscope/pkg/fleet/cluster"
	"github.com/cniscope/cniscope/pkg/fleet/digest"
	"github.com/cniscope/cniscope/pkg/fleet/fanout"
	"github.com/cniscope/cniscope/pkg/show"
	"github.com/cniscope/cniscope/pkg/terminal"
)

// answerMost bounds a node's answer in bytes and, with --concurrency, memory.
const answerMost = 4 << 20

func (s *session) each(ctx context.Context, question []string,
	take func(node string, answer []byte) error,
) (digest.Nodes, error) {
	defer s.progress.end()
	var nodes digest.Nodes
	s.progress.step(nodes, len(s.readers))
	ask := func(ctx context.Context, r cluster.Reader) ([]byte, error) {
		return s.Answer(ctx, r, question, answerMost)
	}
	for r, answer := range fanout.Ask(ctx, s.readers, s.limits, ask) {
		err := answer.Err
		if err == nil {
			err = take(r.Node, answer.Value)
		}
		nodes.Answer(r.Node, err)
		s.progress.step(nodes, len(s.readers))
	}
	return nodes.Sorted(), ctx.Err()
}

func document(answer []byte, to any) error {
	if err := json.Unmarshal(answer, to); err != nil {
		return fmt.Errorf("its answer cannot be read: %w; use the kubectl cniscope of its version", err)
	}
	return nil
}

func (o *options) print(cmd *cobra.Command, d any, text func(io.Writer) error) error {
	if o.format == "json" {
		return command.Indented(cmd.OutOrStdout(), d)
	}
	out := cmd.OutOrStdout()
	return text(show.Writer(out, terminal.ASCII(os.Getenv), terminal.Colors(o.color, out, os.Getenv)))
}

type progress struct {
	w     io.Writer
	live  bool
	drawn time.Time
}

func newProgress(w io.Writer) *progress { return &progress{w: w, live: terminal.Is(w)} }

func (p *progress) step(n digest.Nodes, all int) {
	if !p.live || time.Since(p.drawn) < 100*time.Millisecond {
		return
	}
	p.drawn = time.Now()
	said := fmt.Sprintf("%s of %s have answered", digest.Number(n.Answered), digest.Count(all, "node"))
	if missing := len(n.Missing); missing > 0 {
		said += fmt.Sprintf(", %s have not", digest.Number(missing))
	}
	fmt.Fprintf(p.w, "\r\x1b[K%s", said)
}

func (p *progress) end() {
	if p.live {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
