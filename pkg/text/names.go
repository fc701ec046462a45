package text

import "strconv"

// NamesMax is how many distinct names of one kind a node gives out: whoever runs on it
// chooses the names of executables, and backends keep every span name and every label
// value for good. A busy node runs some dozens.
const NamesMax = 200

// Names lets a bounded number of distinct names through, first come, first served. The zero value lets
// NamesMax through. It is not safe for concurrent use.
type Names struct{ seen map[string]bool }

// Limit returns name, or instead where name is one too many, or is empty, or holds what
// must be escaped to be printed.
func (n *Names) Limit(name, instead string) string {
	if n.seen[name] {
		return name
	}
	if name == "" || strconv.Quote(name) != `"`+name+`"` || len(n.seen) >= NamesMax {
		return instead
	}
	if n.seen == nil {
		n.seen = map[string]bool{}
	}
	n.seen[name] = true
	return name
}
