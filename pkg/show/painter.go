package show

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/cniscope/cniscope/pkg/text"
)

// Options of a waterfall.
type Options struct {
	// In columns; minimum 40.
	Width int
	// Wrap keeps the lines of waterfalls within Width.
	Wrap  bool
	Color bool
	// All draws also lo and teardowns; Each draws each command on its own line.
	All, Each bool
	// For a locale without UTF-8.
	ASCII  bool
	Limits Limits
}

type painter struct {
	Options
	b strings.Builder
}

func (p *painter) flush(w io.Writer) error {
	said := p.b.String()
	p.b.Reset()
	if p.Wrap {
		said = wrapped(said, max(p.Width, narrowest))
	}
	if p.ASCII {
		said = ASCII(said)
	}
	_, err := io.WriteString(w, said)
	return err
}

// wrapped breaks lines at spaces. The rest of a line is indented by four more columns than its start.
func wrapped(said string, width int) string {
	var b strings.Builder
	for line := range strings.Lines(said) {
		indent := strings.Repeat(" ", 4+len(line)-len(strings.TrimLeft(line, " ")))
		column, spaces := 0, ""
		for part := range strings.SplitAfterSeq(line, " ") {
			word := strings.TrimRight(part, " \n")
			switch {
			case word == "":
			case column > len(indent) && column+len(spaces)+visible(word) > width:
				b.WriteString("\n" + indent + word)
				column, spaces = len(indent)+visible(word), ""
			default:
				b.WriteString(spaces + word)
				column, spaces = column+len(spaces)+visible(word), ""
			}
			spaces += part[len(word):]
		}
		b.WriteString(spaces)
	}
	return b.String()
}

func visible(s string) int {
	columns := utf8.RuneCountInString(s)
	for _, color := range [...]string{red, yellow, dim, bold, plain} {
		columns -= len(color) * strings.Count(s, color)
	}
	return columns
}

// ANSI colors (ECMA-48, SGR).
const (
	red    = "\x1b[31;1m"
	yellow = "\x1b[33;1m"
	dim    = "\x1b[2m"
	bold   = "\x1b[1m"
	plain  = "\x1b[0m"
)

func (p *painter) paint(color, s string) string {
	if !p.Color || color == "" || s == "" {
		return s
	}
	return color + s + plain
}

func (p *painter) printf(format string, args ...any) { fmt.Fprintf(&p.b, format, args...) }

func (p *painter) note(format string, args ...any) {
	p.b.WriteString(p.paint(dim, fmt.Sprintf(format, args...)) + "\n")
}

func title(by string) string {
	switch by {
	case "part":
		return "time went into"
	case "cause":
		return "dominant cause"
	}
	return by
}

func padded(s string, columns int) string {
	if n := utf8.RuneCountInString(s); n <= columns {
		return s + strings.Repeat(" ", columns-n)
	}
	return string([]rune(s)[:columns-1]) + "…"
}

func inMS(ms float64) time.Duration {
	return text.Round(time.Duration(ms * float64(time.Millisecond)))
}

// ASCII replacements of signs, by position.
const (
	signs    = "█▌▐▏░│✗✓→×·…±µ–"
	standIns = "#==|:|x+>x-~~u-"
)

// Writer writes reports to w. It colors marks and the headings of tables, and rewrites the rest for an ASCII terminal.
// Each Write has whole lines.
func Writer(w io.Writer, ascii, color bool) io.Writer { return writer{w, ascii, color} }

type writer struct {
	io.Writer
	ascii, color bool
}

func (w writer) Write(said []byte) (int, error) {
	var b strings.Builder
	for line := range strings.Lines(string(said)) {
		if w.color {
			line = painted(line)
		}
		if w.ascii {
			line = ASCII(line)
		}
		b.WriteString(line)
	}
	_, err := io.WriteString(w.Writer, b.String())
	return len(said), err
}

func painted(line string) string {
	p := painter{Options: Options{Color: true}}
	switch mark, _, _ := strings.Cut(line, " "); {
	case mark == "✗" || mark == "!":
		head, _, _ := strings.Cut(strings.TrimRight(line, "\n"), ": ")
		return p.paint(map[string]string{"✗": red, "!": yellow}[mark], head) + line[len(head):]
	case mark != "" && unicode.IsUpper(rune(mark[0])) && line == strings.ToUpper(line):
		return p.paint(bold, strings.TrimRight(line, "\n")) + "\n"
	}
	return line
}

// ASCII rewrites s for an ASCII terminal and keeps columns.
func ASCII(s string) string {
	known := []rune(signs)
	return strings.Map(func(r rune) rune {
		if r < 0x80 {
			return r
		}
		if i := slices.Index(known, r); i >= 0 {
			return rune(standIns[i])
		}
		return '?'
	}, s)
}
