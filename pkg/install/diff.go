package install

import (
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// Diff shows what the plan would change, as a unified diff. Of programs it says the size
// and the digest.
func (p *Plan) Diff() string {
	var b strings.Builder
	for _, c := range p.changes {
		from, to := "a"+c.path, "b"+c.path
		if c.before == nil {
			from = "/dev/null"
		}
		if c.after == nil {
			to = "/dev/null"
		}
		// Options may hold secrets of the operator's.
		secret := c.path == optionsFile && c.after == nil
		if c.before.isText() && c.after.isText() && !secret {
			fmt.Fprint(&b, udiff.Unified(from, to, c.before.text(), c.after.text()))
			continue
		}
		fmt.Fprintf(&b, "--- %s\n+++ %s\n", from, to)
		b.WriteString(c.before.summary("-") + c.after.summary("+"))
	}
	return b.String()
}

func (c *content) summary(sign string) string {
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%s %d bytes, sha256 %s\n", sign, len(c.data), c.digest())
}

func (c *content) text() string {
	switch {
	case c == nil:
		return ""
	case c.to != "":
		return "link to " + c.to + "\n"
	default:
		return string(c.data)
	}
}
