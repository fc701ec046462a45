package onwindows

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"
)

// Diff shows what the plan would change, as a unified diff. Of programs it says the size and the digest, as of the
// manifest, which has whole what was there before; and of variables that are somebody else's the names.
func (p *Plan) Diff() string {
	var b strings.Builder
	for _, c := range p.changes {
		from, to := c.String(), c.String()
		if c.before == nil {
			from = "nothing"
		}
		if c.after == nil {
			to = "nothing"
		}
		if c.Kind == Environment {
			c.before, c.after = withoutValues(c.before), withoutValues(c.after)
		}
		if !c.secret() && utf8.Valid(c.before) && utf8.Valid(c.after) && !bytes.ContainsRune(c.before, 0) && !bytes.ContainsRune(c.after, 0) {
			text := func(data []byte) string { return strings.ReplaceAll(string(data), "\r\n", "\n") }
			if d := udiff.Unified(from, to, text(c.before), text(c.after)); d != "" {
				b.WriteString(d)
				continue
			}
		}
		fmt.Fprintf(&b, "--- %s\n+++ %s\n%s%s", from, to, summary("-", c.before), summary("+", c.after))
	}
	return b.String()
}

// secret: of options the operator's are removed, and the manifest has others' variables.
func (c change) secret() bool {
	return c.Kind == File && (c.after == nil && strings.HasSuffix(c.Name, ".toml") || strings.HasSuffix(c.Name, manifestFile))
}

// withoutValues leaves out what variables are that no installation sets.
func withoutValues(environment []byte) []byte {
	lines := linesOf(environment)
	for i, l := range lines {
		name, _, _ := strings.Cut(l, "=")
		ours := slices.ContainsFunc(variables(""), func(v string) bool {
			set, _, _ := strings.Cut(v, "=")
			return strings.EqualFold(set, name)
		})
		if !ours {
			lines[i] = name + "=…"
		}
	}
	if environment == nil {
		return nil
	}
	return []byte(strings.Join(append(lines, ""), "\n"))
}

func summary(sign string, data []byte) string {
	if data == nil {
		return ""
	}
	return fmt.Sprintf("%s %d bytes, sha256 %s\n", sign, len(data), digest(data))
}
