package show

import (
	"slices"
	"strings"
)

// ASCII replacements of signs, by position.
const (
	signs    = "█▌▐▏░│✗✓→×·…±µ–"
	standIns = "#==|:|x+>x-~~u-"
)

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
