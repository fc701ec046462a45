package redact

import (
	"maps"
	"slices"
	"strings"
)

// Inherited holds what the last environment adds: most plugins have the same.
type Inherited struct {
	all  string
	adds Call
}

// maxInherited is in bytes.
const maxInherited = 16 << 10

// Inherit is Environment, and cheap for a Call with names only.
func (c *Call) Inherit(from *Inherited, variables ...string) {
	all := strings.Join(variables, "\x00")
	if all == c.inherited {
		return
	}
	if all != from.all {
		*from = Inherited{all: all}
		from.adds.Environment(variables...)
	}
	c.inherited = from.all
	adds := &from.adds
	apart := !adds.lost && len(adds.names) == 0 && adds.kept <= maxInherited && !c.mentioned(all)
	if !apart || len(c.values) > 0 || c.lost || c.full {
		c.Environment(variables...)
		return
	}
	c.values, c.short, c.kept = maps.Clone(adds.values), maps.Clone(adds.short), adds.kept
	c.index, c.asked = index{adds.index.plain.clone(), adds.index.folded.clone()}, answers{}
}

// mentioned reports whether s has a name.
func (c *Call) mentioned(s string) bool {
	for name := range c.names {
		part, at := name[:min(len(name), minID)], 0
		for i := 0; i >= 0; at++ {
			i = strings.Index(s[at:], part)
			at += max(i, 0)
			end := at + len(part)
			begins, cut := at == 0 || !isLetter(s[at-1]), len(part) == minID
			if i >= 0 && begins && (cut || end == len(s) || !isLetter(s[end])) {
				return true
			}
		}
	}
	return false
}

func (n needles) clone() needles { return needles{slices.Clone(n.slots), n.used} }
