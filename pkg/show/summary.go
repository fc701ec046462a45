package show

import (
	"fmt"
	"io"
	"iter"
	"strings"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/judge"
)

// Summary says in a line each which calls failed and which were slow, before anything
// is drawn.
func Summary(w io.Writer, operations iter.Seq[*tracepb.ResourceSpans], o Options) error {
	p := &painter{Options: o}
	pods := map[string]bool{}
	var failed, slow, all int
	for rs := range operations {
		for _, call := range calls(rs) {
			all++
			pods[pod(call)] = true
			switch {
			case call.failed():
				failed++
				p.problem("✗ ", red, call, call.Status.Message)
			case call.slow():
				slow++
				p.problem("! ", yellow, call, fmt.Sprintf("%s of %s: %s", judge.Round(call.ms("cniscope.biggest_part_ms")),
					judge.Round(call.took()), call.text("cniscope.biggest_part")))
			}
		}
	}
	_, err := fmt.Fprintf(w, "%s of %s: %d failed, %d slow\n%s\n",
		plural(all, "call"), plural(len(pods), "pod"), failed, slow, p.b.String())
	return err
}

func (p *painter) problem(mark, color string, call *node, why string) {
	p.b.WriteString(p.paint(color, mark+pod(call)+"  "+what(call)) + "  " + strings.TrimSpace(why) + "\n")
}
