package show

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
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

// Differences writes a comparison.
func Differences(w io.Writer, c Comparison, o Options) error {
	p := &painter{Options: o}
	for _, kind := range c.Kinds {
		p.printf("%s  %s\n", p.paint(bold, kind.Name), p.paint(kind.Word.color(), kind.sentence()))
	}
	for _, kind := range c.Kinds {
		if slices.ContainsFunc(kind.Rows, func(c Change) bool { return c.Word != Same }) {
			p.compared(kind)
		}
	}
	return p.flush(w)
}

// leastCalls on each side usually show a difference (help of diff).
const leastCalls = 10

func (k KindCompared) sentence() string {
	word := string(k.Word)
	switch k.Word {
	case Appeared:
		return fmt.Sprintf("appeared: none → %s, median %s", text.Count(k.B.Calls, "call"), inMS(k.B.Time))
	case Vanished:
		return fmt.Sprintf("vanished: %s → none", text.Count(k.A.Calls, "call"))
	case Unclear:
		word += " to tell"
	case Same:
		if n := min(k.A.Calls, k.B.Calls); n < leastCalls {
			word += fmt.Sprintf(", but too few calls (%d, usually %d are enough)", n, leastCalls)
		}
	}
	return fmt.Sprintf("%s: median %s%s → %s%s  ×%s  (%d → %s)", word, inMS(k.A.Time), k.A.precision(),
		inMS(k.B.Time), k.B.precision(), ratio(k.Ratio), k.A.Calls, text.Count(k.B.Calls, "call"))
}

func (s Side) precision() string {
	if s.PlusMinus == 0 {
		return ""
	}
	return fmt.Sprintf(" ±%.0f%%", s.PlusMinus)
}

func (p *painter) compared(kind KindCompared) {
	column := 16
	for _, c := range kind.Rows {
		column = max(column, utf8.RuneCountInString(c.what()))
	}
	column = min(column, max(24, p.Width-84))
	heading := fmt.Sprintf("%-15s  %-*s  %21s %7s  %13s  %21s", "", column, "",
		"time per call", "ratio", "number", "time of one")
	p.printf("\n%s\n  %s\n", p.paint(bold, kind.Name), p.paint(dim, strings.TrimRight(heading, " ")))
	same := map[string][]string{}
	for _, c := range kind.Rows {
		if c.Word == Same {
			same[c.By] = append(same[c.By], c.Name)
			continue
		}
		word := p.paint(c.Word.color(), fmt.Sprintf("%-15s", c.Word))
		line := fmt.Sprintf("  %s  %s  %21s %7s  %13s  %21s", word, padded(c.what(), column),
			arrow(c, inMS(c.A.Time).String(), inMS(c.B.Time).String()), times(c.Ratio),
			arrow(c, digits(c.A.PerCall), digits(c.B.PerCall)), arrow(c, inMS(c.A.Each).String(), inMS(c.B.Each).String()))
		p.b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	for _, by := range slices.SortedFunc(maps.Keys(same), compareBy) {
		p.printf("  %s\n", p.paint(dim, string(Same)+": "+title(by)+" "+strings.Join(same[by], " · ")))
	}
}

func (c Change) what() string { return title(c.By) + " " + c.Name }

func arrow(c Change, a, b string) string {
	switch c.Word {
	case Appeared:
		return "→ " + b
	case Vanished:
		return a + " →"
	}
	return a + " → " + b
}

func times(r float64) string {
	if r == 0 {
		return ""
	}
	return "×" + ratio(r)
}

func ratio(r float64) string {
	if r >= 10 {
		return strconv.FormatFloat(r, 'f', 0, 64)
	}
	return strconv.FormatFloat(r, 'g', 2, 64)
}

func digits(n float64) string { return strconv.FormatFloat(n, 'g', 3, 64) }

func (w Word) color() string {
	switch w {
	case Slower, More, Appeared:
		return red
	case Faster, Fewer, Vanished:
		return bold
	case Unclear:
		return yellow
	}
	return dim
}
