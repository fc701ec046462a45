package config

import (
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/cniscope/cniscope/pkg/text"
)

// Change is one option that is not what it was.
type Change struct {
	Key string
	// Old and New are the values as people write them. They are the same where only
	// a secret changed.
	Old, New string
	// Live is true where the change takes effect while cniscope runs; otherwise it
	// needs a restart.
	Live bool
}

// String returns "slow.command: 250ms -> 100ms", and says so where that needs a
// restart.
func (c Change) String() string {
	s := c.Key + ": " + c.Old + " -> " + c.New
	if c.Old == c.New {
		s = c.Key + ": changed (values are not shown)"
	}
	if !c.Live {
		s += " (needs a restart)"
	}
	return s
}

// Changes returns how o differs from old, in the order of the file.
func (o Options) Changes(old Options) []Change {
	var changes []Change
	before := old.schema()
	for i, opt := range o.schema() {
		if opt.same(before[i].field) {
			continue
		}
		changes = append(changes, Change{opt.key, unquoted(before[i].toml()), unquoted(opt.toml()), opt.live})
	}
	return changes
}

// unquoted is a TOML value as people say it.
func unquoted(s string) string {
	if inner := strings.Trim(s, `"`); len(inner) == len(s)-2 && inner != "" && !strings.Contains(inner, `\`) {
		return inner
	}
	return s
}

// running returns what is in force after next was loaded while o was: the live
// options of next, the others of o.
func (o Options) running(next Options) Options {
	now := o
	to := now.schema()
	for i, from := range next.schema() {
		if from.live {
			to[i].take(from.field)
		}
	}
	return now
}

// TOML returns all options as a file that Parse reads; secrets are redacted, and
// what is not the default says in a comment what the default is.
func (o Options) TOML() string {
	var b strings.Builder
	defaults := Default()
	standard := defaults.schema()
	section := ""
	for i, opt := range o.schema() {
		dot := strings.LastIndexByte(opt.key, '.')
		if s := opt.key[:max(0, dot)]; s != section {
			if section != "" {
				b.WriteByte('\n')
			}
			section = s
			b.WriteString("[" + s + "]\n")
		}
		b.WriteString(opt.key[dot+1:] + " = " + opt.toml())
		if !opt.same(standard[i].field) {
			b.WriteString("  # default: " + standard[i].toml())
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Repair replaces by its default each option of o that no options file could hold, and describes
// what it replaced. It is for options from elsewhere, as those in a recording.
func (o *Options) Repair() (said []string) {
	usual := Default()
	defaults := usual.schema()
	for i, opt := range o.schema() {
		if opt.same(defaults[i].field) {
			continue
		}
		is := opt.toml()
		var decoded map[string]any
		if toml.Unmarshal([]byte("is = "+is), &decoded) == nil && len(opt.set(decoded["is"])) == 0 {
			continue
		}
		opt.take(defaults[i].field)
		said = append(said, fmt.Sprintf("%s = %s cannot be; the default %s is taken", opt.key, text.Clean(is, 64), opt.toml()))
	}
	return said
}
