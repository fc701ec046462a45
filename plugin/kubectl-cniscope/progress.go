package main

import (
	"fmt"
	"io"
	"time"

	"github.com/cniscope/cniscope/pkg/fleet/digest"
	"github.com/cniscope/cniscope/pkg/terminal"
)

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
