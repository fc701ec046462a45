package show

import (
	"encoding/hex"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/semconv/v1.43.0"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/attr"
	"github.com/cniscope/cniscope/pkg/text"
)

// Waterfall draws an operation: for each call a headline, its verdict, and a bar for each span.
// What was slow or failed has a mark at the left, and a colour.
func Waterfall(w io.Writer, rs *tracepb.ResourceSpans, o Options) error {
	p := &painter{Options: o}
	p.Width = max(p.Width, 60)
	resource := attributes(rs.GetResource().GetAttributes())
	for _, call := range calls(rs) {
		if plain(call) && !o.All {
			fmt.Fprintf(&p.b, "%s  %s  %s\n\n", p.paint(bold, pod(call)), what(call), p.paint(dim, text.Round(call.took()).String()))
			continue
		}
		p.headline(call, resource)
		p.axis(call)
		for _, child := range p.children(call) {
			p.row(call, child, 0)
		}
		for _, name := range list(call.attrs[attr.NeverRunKey]) {
			p.line("✗ ", red, fmt.Sprintf("%s %s", name, call.text(attr.CNICommandKey)), "", "never ran")
		}
		p.b.WriteByte('\n')
	}
	_, err := io.WriteString(w, p.b.String())
	return err
}

// plain reports whether a call is an ordinary one of the loopback plugin, as in every pod.
func plain(call *node) bool {
	return len(call.children) == 1 && len(call.children[0].children) == 0 &&
		!call.notable() && !call.children[0].notable() && !call.is(attr.PartialKey) && call.text(attr.CNIIfNameKey) == "lo"
}

// headline writes whose call it is, how long it took, its verdict, and details.
func (p *painter) headline(call *node, resource attrs) {
	fmt.Fprintf(&p.b, "%s  %s  %s", p.paint(bold, pod(call)), what(call), p.paint(bold, text.Round(call.took()).String()))
	if call.failed() {
		fmt.Fprintf(&p.b, "  %s", p.paint(red, "FAILED: "+call.Status.Message))
	}
	if call.is(attr.SlowKey) {
		fmt.Fprintf(&p.b, "  %s", p.paint(yellow, fmt.Sprintf("SLOW: more than %s", call.ms(attr.SlowThresholdMSKey))))
	}
	for _, slow := range slowThings() {
		if n := call.number(slow.key); n > 0 {
			fmt.Fprintf(&p.b, "  %s", p.paint(yellow, plural(int(n), slow.name)))
		}
	}
	p.b.WriteByte('\n')
	if verdict := call.text(attr.VerdictKey); verdict != "" {
		if verdict != call.Status.GetMessage() { // which is in the headline
			fmt.Fprintf(&p.b, "  %s\n", p.paint(bold, verdict))
		}
		if remedy := call.text(attr.RemedyKey); remedy != "" {
			fmt.Fprintf(&p.b, "  → %s\n", remedy)
		}
	} else if part := call.biggestPart(); part != "" {
		fmt.Fprintf(&p.b, "  %s\n", part)
	}
	if why := call.text(attr.PartialReasonKey); why != "" {
		fmt.Fprintf(&p.b, "  %s\n", p.paint(yellow, "not everything was seen: "+why))
	}
	details := []string{time.Unix(0, int64(call.StartTimeUnixNano)).UTC().Format("2006-01-02 15:04:05.000Z")}
	for _, d := range []struct{ name, value string }{
		{"node", resource.text(semconv.K8SNodeNameKey)},
		{"network", call.text(attr.CNINameKey)},
		{"sandbox", short(call.text(attr.SandboxIDKey))},
		{"trace", hex.EncodeToString(call.TraceId)},
		{"first connection after", call.later()},
	} {
		if d.value != "" {
			details = append(details, d.name+" "+d.value)
		}
	}
	fmt.Fprintf(&p.b, "  %s\n", p.paint(dim, strings.Join(details, " · ")))
}

func (p *painter) children(n *node) []*node {
	if p.Each {
		return n.children
	}
	return fold(n.children)
}

func (p *painter) row(call, n *node, depth int) {
	mark, color := "  ", ""
	if n.failed() {
		mark, color = "✗ ", red
	} else if n.is(attr.SlowKey) {
		mark, color = "! ", yellow
	}
	remarks := n.remarks()
	if n.is(attr.SlowKey) {
		remarks = append([]string{fmt.Sprintf("SLOW: more than %s", n.ms(attr.SlowThresholdMSKey))}, remarks...)
	}
	if args := list(n.attrs[semconv.ProcessCommandArgsKey]); len(args) > 0 {
		remarks = append(remarks, p.paint(dim, strings.Join(args, " ")))
	}
	name := strings.Repeat("  ", depth) + n.Name
	if n.count > 1 {
		name += fmt.Sprintf(" ×%d", n.count)
	}
	p.line(mark, color, name, p.bar(call, n), strings.Join(append([]string{fmt.Sprintf("%9s", text.Round(n.took()))}, remarks...), "  "))
	for _, child := range p.children(n) {
		p.row(call, child, depth+1)
	}
}

// line writes one row: mark, name, bar and text, each in its column.
func (p *painter) line(mark, color, name, bar, text string) {
	name = padded(name, nameColumn)
	if bar == "" {
		bar = strings.Repeat(" ", p.barColumn())
	}
	fmt.Fprintf(&p.b, "%s│%s│ %s\n", p.paint(color, mark+name), p.paint(color, bar), text)
}

const nameColumn = 28

func (p *painter) barColumn() int { return max(20, min(60, p.Width-nameColumn-34)) }

func (p *painter) axis(call *node) {
	end := text.Round(call.took()).String()
	fill := max(1, p.barColumn()-1-utf8.RuneCountInString(end))
	fmt.Fprintf(&p.b, "  %s %s\n", strings.Repeat(" ", nameColumn), p.paint(dim, "0"+strings.Repeat(" ", fill)+end))
}

// bar draws the extent of n within its call.
func (p *painter) bar(call, n *node) string {
	width := p.barColumn()
	whole := float64(max(1, call.EndTimeUnixNano-call.StartTimeUnixNano))
	place := func(t uint64) float64 {
		return min(1, max(0, float64(int64(t-call.StartTimeUnixNano))/whole)) * float64(width)
	}
	from, to := place(n.StartTimeUnixNano), place(n.EndTimeUnixNano)
	first := min(int(from), width-1)
	last := max(int(to+0.5), first+1)
	cell := "█"
	if to-from < 0.5 {
		cell = "▏"
	}
	return strings.Repeat(" ", first) + strings.Repeat(cell, last-first) + strings.Repeat(" ", width-last)
}

func short(id string) string {
	if len(id) > 12 {
		return id[:12]
	}
	return id
}

// summaryMost is how many calls a summary lists: a person reads no more.
const summaryMost = 200

// Summary writes a line for each call that failed or was slow.
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
