package show

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// Table writes statistics for a person.
func Table(w io.Writer, s Statistics, o Options) error {
	p := &painter{Options: o}
	fmt.Fprintf(&p.b, "%s of %s, %s in all: %d failed, %d slow\n", plural(s.Calls, "call"), plural(s.Pods, "pod"), inMS(s.Sum), s.Failed, s.Slow)
	if s.Partial > 0 {
		fmt.Fprintf(&p.b, "%s\n", p.paint(yellow, fmt.Sprintf("not everything was seen of %s", plural(s.Partial, "call"))))
	}
	for _, kind := range s.Kinds {
		p.kindOfCall(kind)
	}
	if len(s.Kinds) > 0 {
		fmt.Fprintf(&p.b, "\n%s\n", p.paint(dim, "share: of the calls' wall time. What runs inside another counts for both; under \"time went into\" each\ninstant is counted once."))
	}
	if slices.ContainsFunc(s.Kinds, sampled) {
		fmt.Fprintf(&p.b, "%s\n", p.paint(dim, fmt.Sprintf("p50 and p99 of more than %d values are those of a random sample of them.", exactly)))
	}
	return p.flush(w)
}

func sampled(kind KindOfCall) bool {
	return kind.Sampled || slices.ContainsFunc(kind.Rows, func(s Statistic) bool { return s.Sampled })
}

func (p *painter) kindOfCall(kind KindOfCall) {
	fmt.Fprintf(&p.b, "\n%s  %s of %s", p.paint(bold, kind.Name), plural(kind.Count, "call"), plural(kind.Pods, "pod"))
	if kind.Failed > 0 {
		fmt.Fprintf(&p.b, "  %s", p.paint(red, fmt.Sprintf("✗ %d failed", kind.Failed)))
	}
	if kind.Slow > 0 {
		fmt.Fprintf(&p.b, "  %s", p.paint(yellow, fmt.Sprintf("! %d slow", kind.Slow)))
	}
	p.b.WriteByte('\n')
	column := p.column(kind)
	fmt.Fprintf(&p.b, "  %s\n", p.paint(dim, fmt.Sprintf("%-*s %7s %9s %9s %9s %6s", column, "", "count", "p50", "p99", "sum", "share")))
	p.statistic(column, "call", Statistic{Calls: kind.Count, Distribution: kind.Distribution, Share: 1}, "")
	by := ""
	for _, s := range kind.Rows {
		if s.By != by {
			by = s.By
			fmt.Fprintf(&p.b, "  %s\n", p.paint(dim, title(by)))
		}
		some := ""
		if s.Calls < kind.Count && s.By != "cause" {
			some = "in " + plural(s.Calls, "call")
		}
		p.statistic(column, "  "+s.Name, s, some)
	}
}

func (p *painter) statistic(column int, name string, s Statistic, remark string) {
	line := fmt.Sprintf("  %s %7d %9s %9s %9s %5.1f%%  %s", padded(name, column), s.Count, inMS(s.P50), inMS(s.P99), inMS(s.Sum), 100*s.Share, p.paint(dim, remark))
	p.b.WriteString(strings.TrimRight(line, " ") + "\n")
}

// column is how wide names are: as the longest, as far as there is room for the numbers.
func (p *painter) column(kind KindOfCall) int {
	widest := 16
	for _, s := range kind.Rows {
		widest = max(widest, 2+utf8.RuneCountInString(s.Name))
	}
	return min(widest, max(24, p.Width-64))
}
