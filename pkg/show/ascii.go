package show

import (
	"io"
	"slices"
	"strings"
)

// ASCII replacements of signs, by position.
const (
	signs    = "█▌▐▏░│✗✓→×·…±µ–"
	standIns = "#==|:|x+>x-~~u-"
)

// Writer returns w. For an ASCII terminal it rewrites each Write, of whole characters.
func Writer(w io.Writer, ascii bool) io.Writer {
	if ascii {
		return asciiWriter{w}
	}
	return w
}

type asciiWriter struct{ io.Writer }

func (w asciiWriter) Write(said []byte) (int, error) {
	_, err := io.WriteString(w.Writer, ASCII(string(said)))
	return len(said), err
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
