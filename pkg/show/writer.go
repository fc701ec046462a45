package show

import (
	"io"
	"slices"
	"strings"
	"unicode"
)

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
