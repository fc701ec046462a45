// Package redact decides what of a foreign text may leave: of a plugin's error message, a
// command's arguments, a path, a setting's value.
//
// Two things must be true of a piece that stays. It has a harmless form: words of a list,
// small numbers, addresses, and what the call itself is named by. A list of what may pass is
// the only rule that holds against spellings nobody thought of. And it repeats nothing of what
// the plugin was told: no eight bytes of its configuration, as they are or encoded, unless
// they are such as everybody may know. A password may consist of listed words.
//
// Everything else becomes a placeholder that tells its kind and length: ‹hex 64›.
//
// Texts are looked at whole and cut afterwards: half a secret has another form.
package redact

import (
	"fmt"
	"slices"
	"strings"
)

// window is how many bytes of a secret in a row are one too many. Shorter pieces are words
// of many texts.
const window = 8

// shortest is the length from which on a whole value is kept out as a word of its own.
const shortest = 4

// Call is what is known of the call that texts are about. The zero value knows nothing, which
// is why only listed words may stay. It is not safe for concurrent use.
type Call struct {
	names   map[string]bool // what it is named by, which leaves anyway
	values  []string        // what it was told, and nobody is to repeat
	ids     []string        // those of them that tools cut short
	asked   map[string]bool // words and whether they are harmless
	short   map[string]bool // those below a window's length, in lower case
	plain   needles         // windows of the values as they are, for what must be quick
	folded  needles         // and of their letters and digits only
	indexed int             // how many values are in plain and folded
	kept    int             // how many bytes the values have
	told    int             // how many configurations are known
	awaits  int             // and how many are not, yet
	lost    bool            // one of them is not kept whole
}

// Await says that a plugin of the call was started: until its configuration is here, nobody
// knows what may be repeated.
func (c *Call) Await() { c.awaits++ }

// whole tells whether all that the call's plugins were told is known.
func (c *Call) whole() bool { return c.told > 0 && c.awaits <= 0 && !c.lost }

// Name adds what the call itself is named by: pod, namespace, network, interface, container
// id, plugin. It leaves with every span, so texts may repeat it.
func (c *Call) Name(names ...string) {
	if c.names == nil {
		c.names = map[string]bool{}
	}
	for _, name := range names {
		if name != "" && len(name) <= maxName && len(c.names) < maxNames {
			if !c.names[name] {
				c.asked = nil
			}
			c.names[name] = true
			if len(name) == idLength && !slices.Contains(c.ids, name) {
				c.ids = append(c.ids, name)
			}
		}
	}
}

// Bounds of what one call may have us keep, in number and bytes.
const (
	maxNames = 256
	maxName  = 253 // of a pod, the longest there is (RFC 1123 subdomain)
	maxAsked = 256
)

// Message returns what may leave of a sentence that a program wrote.
func (c *Call) Message(s string) string {
	t := &text{call: c, s: s, cut: make([]cut, len(s))}
	c.repeated(s, t.cut)
	c.counted(s, t.cut)
	t.chunks()
	return t.String()
}

// Path returns what may leave of a path: each of its parts by itself, and below a folder that
// every system has also what looks as if somebody typed it.
func (c *Call) Path(path string) string {
	parts, spots, at := strings.Split(path, "/"), c.spots(path), 0
	for i, part := range parts {
		marked := slices.Contains(spots[at:at+len(part)], goes)
		at += len(part) + 1
		if part != "" && !c.names[part] && (marked || !c.Harmless(part) && (c.lost || !system(parts[:i]) || !wordlike(part) || c.Repeats(part))) {
			parts[i] = placeholder(part)
		}
	}
	return strings.Join(parts, "/")
}

// system tells whether a path begins as those do that every system has (hier(7)).
func system(parts []string) bool {
	if len(parts) < 2 || parts[0] != "" {
		return false
	}
	switch parts[1] {
	case "bin", "boot", "dev", "etc", "host", "lib", "lib64", "media", "mnt", "opt", "proc", "run", "sbin", "srv", "sys", "tmp", "usr", "var":
		return true
	}
	return false
}

// Apart returns which of several words stand for what the call was told if they are read one
// after another.
func (c *Call) Apart(words []string) []bool {
	spots, repeats, at := c.spots(strings.Join(words, " ")), make([]bool, len(words)), 0
	for i, word := range words {
		repeats[i] = slices.Contains(spots[at:at+len(word)], goes)
		at += len(word) + 1
	}
	return repeats
}

// Word returns a single word, or a placeholder for it.
func (c *Call) Word(s string) string {
	if s == "" || c.Harmless(s) {
		return s
	}
	return placeholder(s)
}

// Harmless tells whether a word may leave as it is. Most words come again: what a call's
// programs are told is asked about once.
func (c *Call) Harmless(s string) bool {
	if c.names[s] {
		return true
	}
	if harmless, known := c.asked[s]; known {
		return harmless
	}
	harmless := c.form(s, !c.lost) && !c.Repeats(s)
	if c.asked == nil || len(c.asked) >= maxAsked {
		c.asked = map[string]bool{}
	}
	if len(s) <= maxName {
		c.asked[s] = harmless
	}
	return harmless
}

// Repeats tells whether a word holds a part of what the call was told, as it is.
func (c *Call) Repeats(s string) bool {
	if len(c.values) == 0 {
		return false
	}
	if len(s) < shortest {
		return false
	}
	plain, folded := lower(s), fold(s)
	return c.short[plain] || c.short[folded] || c.plain.in(plain) || c.folded.in(folded)
}

// placeholder tells kind and length of what does not leave.
func placeholder(s string) string { return fmt.Sprintf("‹%s %d›", kind(s), len(s)) }

func kind(s string) string {
	var digits, hex, letters, others int
	for i := range len(s) {
		switch ch := s[i]; {
		case isDigit(ch):
			digits++
		case ch|0x20 >= 'a' && ch|0x20 <= 'f':
			hex++
		case isLetter(ch):
			letters++
		case strings.IndexByte("+/=-_", ch) < 0:
			others++
		}
	}
	switch n := len(s); {
	case digits == n:
		return "number"
	case digits+hex == n && digits > 0 && n >= window:
		return "hex"
	case hex+letters == n:
		return "word"
	case others == 0 && n >= 2*window:
		return "base64"
	}
	return "text"
}
