// Package redact decides which parts of a foreign text may leave the node: of a plugin's error
// message, a command's arguments, a path, a setting's value.
//
// A part may stay on two conditions. It has a harmless form: listed words, small numbers, addresses, and
// the names of the call itself. Only a list of what may pass holds against spellings that nobody thought
// of. And it repeats nothing that the plugin was told: no eight bytes of its configuration, plain or
// encoded, unless everybody may know them. (A password may consist of listed words.)
//
// Everything else becomes a placeholder that tells kind and length: ‹hex 64›.
//
// Redact whole texts and cut them afterwards: half a secret has another form.
package redact

import (
	"fmt"
	"slices"
	"strings"
)

// window is how many consecutive bytes of a secret must not leave. Shorter pieces occur in ordinary words.
const window = 8

// shortest is the length from which a whole value must not leave as a word of its own.
const shortest = 4

// Call is what is known about the call that texts are about. With the zero value only listed
// words may stay. It is not safe for concurrent use.
type Call struct {
	names   map[string]bool // names of the call, which leave with its spans anyway
	values  []string        // what it was told, and must not leave
	ids     []string        // the names that tools cut short
	asked   map[string]bool // cache of Harmless
	short   map[string]bool // values shorter than a window, in lower case
	plain   needles         // windows of the values in lower case
	folded  needles         // windows of their letters and digits only
	indexed int             // how many values are in plain and folded
	kept    int             // length of all values, in bytes
	told    int             // how many configurations are known
	awaits  int             // how many are still to come
	lost    bool            // one of them could not be kept whole
}

// Await notes that a plugin of the call was started: until its configuration is given to
// Configuration, only listed words may stay.
func (c *Call) Await() { c.awaits++ }

// whole reports whether everything that the call's plugins were told is known.
func (c *Call) whole() bool { return c.told > 0 && c.awaits <= 0 && !c.lost }

// Name adds names of the call itself: pod, namespace, network, interface, container id, plugin.
// They leave with every span, so texts may repeat them.
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

// Bounds of what is kept for one call, in number and bytes.
const (
	maxNames = 256
	maxName  = 253 // of a pod, the longest there is (RFC 1123 subdomain)
	maxAsked = 256
)

// Message returns what may leave of a text that a program wrote.
func (c *Call) Message(s string) string {
	m := &message{call: c, s: s, marks: make([]mark, len(s))}
	c.repeated(s, m.marks)
	c.counted(s, m.marks)
	m.chunks()
	return m.String()
}

// Path returns what may leave of a path: each part on its own, and below a folder that every
// system has also a part that looks typed by a person.
func (c *Call) Path(path string) string {
	parts, spots, at := strings.Split(path, "/"), c.spots(path), 0
	for i, part := range parts {
		marked := slices.Contains(spots[at:at+len(part)], drop)
		at += len(part) + 1
		if part != "" && !c.names[part] && (marked || !c.Harmless(part) && (c.lost || !system(parts[:i]) || !wordlike(part) || c.Repeats(part))) {
			parts[i] = placeholder(part)
		}
	}
	return strings.Join(parts, "/")
}

// system reports whether a path begins with a folder that every system has (hier(7)).
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

// Apart reports for each of several words whether it is part of something that the call was told
// when they are read one after another.
func (c *Call) Apart(words []string) []bool {
	spots, repeats, at := c.spots(strings.Join(words, " ")), make([]bool, len(words)), 0
	for i, word := range words {
		repeats[i] = slices.Contains(spots[at:at+len(word)], drop)
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

// Harmless reports whether a word may leave as it is. Most words come again, so the answer is kept.
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

// Repeats reports whether a word holds part of what the call was told, not encoded.
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

// placeholder tells the kind and length of what it replaces.
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
