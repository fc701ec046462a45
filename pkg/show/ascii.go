package show

import (
	"slices"
	"strings"
)

// What a terminal that knows ASCII alone shows for each of the signs that cniscope writes.
const (
	signs    = "█▌▐▏░│✗✓→×·…±µ–"
	standIns = "#==|:|x+>x-~~u-"
)

// ASCII rewrites text for a terminal that knows nothing else. Each letter keeps its column; what has no
// stand-in becomes a question mark.
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
