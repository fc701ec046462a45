package show

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cniscope/cniscope/pkg/text"
)

// Table writes statistics as text.
func Table(w io.Writer, s Statistics, o Options) error {
	p := &painter{Options: o}
	p.printf("%s of %s, %s in all: %d failed, %d slow\n",
		text.Count(s.Calls, "call"), text.Count(s.Pods, "pod"), inMS(s.Sum), s.Failed, s.Slow)
	if s.Partial > 0 {
		p.printf("%s\n", p.paint(yellow, fmt.Sprintf("incomplete: %s", text.Count(s.Partial, "call"))))
	}
	p.spent(s.Spent)
	for _, kind := range s.Kinds {
		p.kindOfCall(kind)
	}
	if len(s.Kinds) > 0 {
		p.printf("\n")
		p.note("share is of the wall time of the calls. Nested rows overlap; under \"time went into\" every moment\n" +
			"counts once.")
	}
	if slices.ContainsFunc(s.Kinds, func(k KindOfCall) bool { return high(k) == mixed }) {
		p.note("%s: the longest (max) where there are fewer than %d.", mixed, p99Least)
	}
	if slices.ContainsFunc(s.Kinds, averaged) {
		p.note("Some commands were sent as series (trace.fold_commands): of these count, sum and the longest are exact, " +
			"p50 and p99 are not.")
	}
	if slices.ContainsFunc(s.Kinds, sampled) {
		p.note("p50 and p99 of more than %d values are those of a random sample of them.", exactly)
	}
	return p.flush(w)
}

func (p *painter) spent(all []Spent) {
	if len(all) == 0 {
		return
	}
	p.printf("\n%s\n", p.paint(bold, "Where the time of all calls went"))
	if all[0].Cause != "" {
		p.printf("  ")
		p.note("%6s %9s %7s  cause", "share", "time", "calls")
	}
	for _, s := range all {
		if s.Cause == "" {
			continue
		}
		p.printf("  %5.1f%% %9s %7d  %s", 100*s.Share, inMS(s.Time), s.Calls, p.paint(yellow, s.Name))
		if s.Worst != nil {
			p.b.WriteString(p.paint(dim, fmt.Sprintf("  %s in %s %s", s.Most(), s.Worst.Pod, s.Worst.Call)))
		}
		p.b.WriteByte('\n')
		if s.Remedy != "" {
			p.printf("%s", text.Steps(strings.Repeat(" ", 27), s.Remedy))
		}
	}
	if rest := restOf(named(all)); rest != "" {
		p.printf("  %s\n", rest)
	}
}

const mixed = "p99/max"

func high(kind KindOfCall) string {
	lacks := func(s Statistic) bool { return s.P99 == nil }
	switch {
	case kind.P99 != nil && !slices.ContainsFunc(kind.Rows, lacks):
		return "p99"
	case kind.P99 == nil && !slices.ContainsFunc(kind.Rows, func(s Statistic) bool { return !lacks(s) }):
		return "max"
	}
	return mixed
}

func (d Distribution) high() time.Duration {
	if d.P99 == nil {
		return inMS(d.Max)
	}
	return inMS(*d.P99)
}

func sampled(kind KindOfCall) bool {
	return kind.Sampled || slices.ContainsFunc(kind.Rows, func(s Statistic) bool { return s.Sampled })
}

func averaged(kind KindOfCall) bool {
	return slices.ContainsFunc(kind.Rows, func(s Statistic) bool { return s.Averaged })
}

func (p *painter) kindOfCall(kind KindOfCall) {
	p.printf("\n%s  %s of %s", p.paint(bold, kind.Name), text.Count(kind.Count, "call"), text.Count(kind.Pods, "pod"))
	if kind.Failed > 0 {
		p.printf("  %s", p.paint(red, fmt.Sprintf("✗ %d failed", kind.Failed)))
	}
	if kind.Slow > 0 {
		p.printf("  %s", p.paint(yellow, fmt.Sprintf("! %d slow", kind.Slow)))
	}
	p.b.WriteByte('\n')
	column := p.column(kind)
	p.printf("  ")
	p.note("%-*s %7s %9s %9s %9s %6s", column, "", "count", "p50", high(kind), "sum", "share")
	p.statistic(column, "call", Statistic{Calls: kind.Count, Distribution: kind.Distribution, Share: 1}, "")
	by := ""
	for _, s := range kind.Rows {
		if s.By != by {
			by = s.By
			p.printf("  %s\n", p.paint(dim, title(by)))
		}
		some := ""
		if s.Calls < kind.Count && s.By != "cause" {
			some = "in " + text.Count(s.Calls, "call")
		}
		p.statistic(column, "  "+s.Name, s, some)
	}
}

func (p *painter) statistic(column int, name string, s Statistic, remark string) {
	line := fmt.Sprintf("  %s %7d %9s %9s %9s %5.1f%%  %s", padded(name, column), s.Count, inMS(s.P50), s.high(),
		inMS(s.Sum), 100*s.Share, p.paint(dim, remark))
	p.b.WriteString(strings.TrimRight(line, " ") + "\n")
}

func (p *painter) column(kind KindOfCall) int {
	widest := 16
	for _, s := range kind.Rows {
		widest = max(widest, 2+utf8.RuneCountInString(s.Name))
	}
	return min(widest, max(24, p.Width-64))
}
