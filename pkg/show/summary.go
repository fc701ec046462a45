package show

import (
	"fmt"
	"io"
	"iter"
	"strings"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// summaryMost is how many calls are named before anything is drawn: a person reads no more.
const summaryMost = 200

// Summary says in a line each which calls failed and which were slow, before anything
// is drawn.
func Summary(w io.Writer, operations iter.Seq[*tracepb.ResourceSpans], o Options) error {
	p := &painter{Options: o}
	pods := newDistinct()
	var failed, slow, all int
	for rs := range operations {
		for _, call := range calls(rs) {
			all++
			pods.add(pod(call))
			switch {
			case call.failed():
				if failed++; failed+slow <= summaryMost {
					p.problem("✗ ", red, call, call.verdict())
				}
			case call.slow():
				if slow++; failed+slow <= summaryMost {
					p.problem("! ", yellow, call, call.verdict())
				}
			}
		}
	}
	if more := failed + slow - summaryMost; more > 0 {
		fmt.Fprintf(&p.b, "… and %d more\n", more)
	}
	_, err := fmt.Fprintf(w, "%s of %s: %d failed, %d slow\n%s\n",
		plural(all, "call"), plural(pods.count(), "pod"), failed, slow, p.b.String())
	return err
}

func (p *painter) problem(mark, color string, call *node, why string) {
	p.b.WriteString(p.paint(color, mark+pod(call)+"  "+what(call)) + "  " + strings.TrimSpace(why) + "\n")
}
