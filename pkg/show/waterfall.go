package show

import (
	"encoding/hex"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"
	"unicode/utf8"

	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/attr"
	"github.com/cniscope/cniscope/pkg/text"
)

// Waterfalls draws a headline, a verdict, and a bar per span for each call. Routine calls are only counted, unless all
// are.
func Waterfalls(w io.Writer, operations iter.Seq[*tracepb.ResourceSpans], o Options) error {
	drawn, more, longest := 0, 0, time.Duration(0)
	kinds := map[bool]bool{} // by teardown
	for rs := range operations {
		for _, call := range calls(rs) {
			drawn += one(o.All || !o.routine(call))
		}
	}
	p := &painter{Options: o}
	for rs := range operations {
		resource := attributes(rs.GetResource().GetAttributes())
		for _, call := range calls(rs) {
			if drawn > 0 && !o.All && o.routine(call) {
				more++
				kinds[call.Name == "CNI DEL"] = true
				longest = max(longest, call.took())
				continue
			}
			p.call(call, resource)
		}
		if err := p.flush(w); err != nil {
			return err
		}
	}
	if more > 0 {
		p.more(more, kinds, longest)
	}
	return p.flush(w)
}

func (p *painter) more(n int, kinds map[bool]bool, longest time.Duration) {
	what, format := "lo", "%s (%s), neither slow nor failed, the longest %s; --all draws them"
	switch {
	case len(kinds) > 1:
		what = "lo, teardown"
	case kinds[true]:
		what = "teardown"
	}
	if n == 1 {
		format = "%s (%s), neither slow nor failed, lasted %s; --all draws it"
	}
	p.note(format, text.Count(n, "more call"), what, text.Round(longest))
}

func (o Options) routine(call *node) bool {
	return (call.text(attr.CNIIfNameKey) == "lo" || call.Name == "CNI DEL") && !call.problem() && !o.Limits.wants(call)
}

func (p *painter) call(call *node, resource attrs) {
	p.headline(call, resource)
	p.axis(call)
	for _, child := range p.children(call) {
		p.row(call, child, 0)
	}
	for _, name := range list(call.attrs[attr.NeverRunKey]) {
		p.line("✗ ", red, fmt.Sprintf("%s %s", name, call.text(attr.CNICommandKey)), "", "did not run")
	}
	p.b.WriteByte('\n')
}

func (p *painter) headline(call *node, resource attrs) {
	p.printf("%s  %s  %s", p.paint(bold, pod(call)), what(call), p.paint(bold, text.Round(call.took()).String()))
	verdict := call.text(attr.VerdictKey)
	if call.failed() {
		failure := ": " + call.Status.Message
		if strings.Contains(verdict, call.Status.Message) {
			failure = "" // it is below
		}
		p.printf("  %s", p.paint(red, "FAILED"+failure))
	}
	if call.is(attr.SlowKey) {
		p.printf("  %s", p.paint(yellow, fmt.Sprintf("SLOW: more than %s", call.ms(attr.SlowThresholdMSKey))))
	}
	for _, slow := range slowThings() {
		if n := call.number(slow.key); n > 0 {
			p.printf("  %s", p.paint(yellow, text.Count(int(n), slow.name)))
		}
	}
	p.b.WriteByte('\n')
	if verdict != "" {
		p.printf("  %s\n", p.paint(bold, verdict))
		if remedy := call.text(attr.RemedyKey); remedy != "" {
			p.printf("%s", text.Steps("  ", remedy))
		}
	} else if part := call.biggestPart(); part != "" {
		p.printf("  %s\n", part)
	}
	if why := call.text(attr.PartialReasonKey); why != "" {
		p.printf("  %s\n", p.paint(yellow, "incomplete: "+why))
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
	p.printf("  ")
	p.note("%s", strings.Join(details, " · "))
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
	if args := n.arguments(); len(args) > 0 {
		remarks = append(remarks, p.paint(dim, strings.Join(args, " ")))
	}
	name := strings.Repeat("  ", depth) + n.rowName()
	if n.count > 1 {
		name += fmt.Sprintf(" ×%d", n.count)
	}
	took := fmt.Sprintf("%9s", text.Round(n.took()))
	said := strings.Join(remarks, "  ")
	room := p.Width - p.nameColumn() - p.barColumn() - 16 // mark, edges and time
	switch {
	case said == "":
		p.line(mark, color, name, p.bar(call, n), took)
	case p.Width < narrow || p.Wrap && visible(said) > room:
		p.line(mark, color, name, p.bar(call, n), took)
		p.printf("      %s\n", said)
	default:
		p.line(mark, color, name, p.bar(call, n), took+"  "+said)
	}
	for _, child := range p.children(n) {
		p.row(call, child, depth+1)
	}
}

func (p *painter) line(mark, color, name, bar, text string) {
	name = padded(name, p.nameColumn())
	if bar == "" {
		bar = strings.Repeat(" ", p.barColumn())
	}
	p.printf("%s│%s│ %s\n", p.paint(color, mark+name), p.paint(color, bar), text)
}

const (
	// narrow is the width below which remarks have their own lines.
	narrow    = 72
	narrowest = 40
)

// nameColumn and barColumn are 28 and 20 of 80 columns. The rest is for time (9) and remarks.
func (p *painter) nameColumn() int { return min(28, max(p.Width, narrowest)*28/80) }

func (p *painter) barColumn() int {
	width, name := max(p.Width, narrowest), p.nameColumn()
	return max(min(20, width-name-14), min(60, width-name-34))
}

func (p *painter) axis(call *node) {
	end := text.Round(call.took()).String()
	fill := max(1, p.barColumn()-1-utf8.RuneCountInString(end))
	p.printf("  %s %s\n", strings.Repeat(" ", p.nameColumn()), p.paint(dim, "0"+strings.Repeat(" ", fill)+end))
}

func (p *painter) bar(call, n *node) string {
	width := p.barColumn()
	place := func(t uint64) float64 { return call.until(t) * float64(2*width) }
	extents := n.same
	if len(extents) == 0 {
		extents = []*node{n}
	}
	halves, touched := make([]float64, 2*width), make([]bool, width)
	for _, one := range extents {
		from, to := place(one.StartTimeUnixNano), place(one.EndTimeUnixNano)
		touched[min(int(from)/2, width-1)] = true
		for i := int(from); i < 2*width && float64(i) < to; i++ {
			halves[i] += min(to, float64(i+1)) - max(from, float64(i))
		}
	}
	var b strings.Builder
	for i := range width {
		sign := cell(halves[2*i] >= 0.5, halves[2*i+1] >= 0.5, touched[i])
		if n.series() && sign != " " {
			sign = pale
		}
		b.WriteString(sign)
	}
	return b.String()
}

// pale marks an unknown position in a series.
const pale = "░"

func cell(left, right, touched bool) string {
	switch {
	case left && right:
		return "█"
	case left:
		return "▌"
	case right:
		return "▐"
	case touched:
		return "▏"
	}
	return " "
}

func short(id string) string {
	if len(id) > 12 {
		return id[:12]
	}
	return id
}

const summaryMost = 200

// Summary writes a line for each failed or slow call.
func Summary(w io.Writer, operations iter.Seq[*tracepb.ResourceSpans], o Options) error {
	p := &painter{Options: o}
	pods := map[string]bool{}
	var failed, slow, all int
	for rs := range operations {
		for _, call := range calls(rs) {
			all++
			pods[pod(call)] = true
			mark, color := "✗ ", red
			switch {
			case call.failed():
				failed++
			case call.slow():
				slow++
				mark, color = "! ", yellow
			default:
				continue
			}
			if failed+slow <= summaryMost {
				head := p.paint(color, mark+pod(call)+"  "+what(call))
				p.printf("%s  %s\n", head, strings.TrimSpace(call.verdict()))
			}
		}
	}
	if more := failed + slow - summaryMost; more > 0 {
		p.printf("… and %d more\n", more)
	}
	if slow > 0 {
		p.note("X of Y: the call lasted Y, and its cause explains X of that. Rows can overlap; X counts each moment once.")
	}
	if strings.Contains(p.b.String(), "unconfirmed") {
		p.note("Unconfirmed work may be for another pod.")
	}
	problems := p.b.String()
	p.b.Reset()
	p.printf("%s of %s: %d failed, %d slow\n%s\n",
		text.Count(all, "call"), text.Count(len(pods), "pod"), failed, slow, problems)
	return p.flush(w)
}
