package show

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/cniscope/cniscope/pkg/text"
)

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
