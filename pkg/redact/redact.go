// Package redact decides which parts of a foreign text may leave the node: an error message, arguments, a path, a
// setting.
//
// A part stays on two conditions. It has a harmless form: listed words, small numbers, addresses, names of the call.
// And it repeats no eight bytes of the plugin's configuration,
// plain or encoded, unless those are public: a password may consist of listed words.
//
// Other parts become a placeholder: ‹hex 64›. Redact before you cut: half a secret has another form.
package redact

import (
	"fmt"
	"slices"
	"strings"
)

// window is how many consecutive secret bytes may not leave; ordinary words share fewer.
const window = 8

// shortest is the minimum length of a value that may not leave as a word.
const shortest = 4

// Call holds a CNI call's known values. The zero value allows listed words only. It is not safe for concurrent use.
type Call struct {
	names  map[string]bool // names of the call, which are in spans
	ids    []string        // names that tools shorten
	asked  answers
	values map[string]bool // confidential values
	short  map[string]bool // shorter than window, in lower case
	index  index
	kept   int  // bytes of values
	told   int  // configurations received
	awaits int  // pending configurations
	lost   bool // a configuration is incomplete
	full   bool

	inherited string
}

// Await notes a plugin whose Configuration follows.
func (c *Call) Await() { c.awaits++ }

func (c *Call) whole() bool { return c.told > 0 && c.awaits <= 0 && !c.lost }

// Name adds the call's names in spans: pod, namespace, network, interface, container id, plugin.
func (c *Call) Name(names ...string) {
	if c.names == nil {
		c.names = map[string]bool{}
	}
	for _, name := range names {
		if name != "" && len(name) <= maxName && len(c.names) < maxNames {
			if !c.names[name] {
				c.asked = answers{}
			}
			c.names[name] = true
			if len(name) == idLength && !slices.Contains(c.ids, name) {
				c.ids = append(c.ids, name)
			}
		}
	}
}

const (
	maxNames = 256
	maxName  = 253 // of a pod (RFC 1123 subdomain)
	maxAsked = 256
)

// Message redacts a text.
func (c *Call) Message(s string) string {
	m := &message{call: c, s: s, marks: make([]mark, len(s)), instead: map[int]string{}}
	c.repeated(s, m.marks)
	c.counted(s, m.marks)
	m.chunks()
	return m.String()
}

// Path redacts a path's parts, except typed-looking ones below standard directories.
func (c *Call) Path(path string) string {
	if path == "" {
		return ""
	}
	if redacted, known := c.asked.paths[path]; known {
		return redacted
	}
	parts, spots, at := strings.Split(path, "/"), make([]mark, len(path)), 0
	c.index.spots(path, spots)
	for i, part := range parts {
		marked := slices.Contains(spots[at:at+len(part)], drop)
		at += len(part) + 1
		if part == "" || c.names[part] {
			continue
		}
		if marked || !c.Harmless(part) && (!system(parts[:i]) || !c.answer(part, (*Call).looksTyped, asTyped)) {
			parts[i] = placeholder(part)
		}
	}
	redacted := strings.Join(parts, "/")
	if c.asked.paths == nil || len(c.asked.paths) >= maxAsked {
		c.asked.paths = map[string]string{}
	}
	if len(path) <= maxName {
		c.asked.paths[path] = redacted
	}
	return redacted
}

// system reports whether a path is below a standard directory (hier(7)).
func system(parts []string) bool {
	if len(parts) < 2 || parts[0] != "" {
		return false
	}
	switch parts[1] {
	case "bin", "boot", "dev", "etc", "host", "lib", "lib64", "media", "mnt", "opt", "proc", "run", "sbin", "srv",
		"sys", "tmp", "usr", "var":
		return true
	}
	return false
}

// Apart reports, per word, whether the words together repeat a value there.
func (c *Call) Apart(words []string) []bool {
	all := strings.Join(words, " ")
	spots, repeats, at := make([]mark, len(all)), make([]bool, len(words)), 0
	c.index.spots(all, spots)
	for i, word := range words {
		repeats[i] = slices.Contains(spots[at:at+len(word)], drop)
		at += len(word) + 1
	}
	return repeats
}

// Word returns a word or its placeholder.
func (c *Call) Word(s string) string {
	if s == "" || c.Harmless(s) {
		return s
	}
	return placeholder(s)
}

// Harmless reports whether a word may stay.
func (c *Call) Harmless(s string) bool {
	if c.names[s] {
		return true
	}
	return c.answer(s, func(c *Call, s string) bool { return c.form(s, !c.lost) && !c.Repeats(s) }, asHarmless)
}

// answers are valid until a name or a value is added.
type answers struct {
	words [questions]map[string]bool
	paths map[string]string // redacted
}

const (
	asHarmless = iota
	asTyped
	asInterface
	questions
)

func (c *Call) answer(s string, decide func(*Call, string) bool, as int) bool {
	if is, known := c.asked.words[as][s]; known {
		return is
	}
	is := decide(c, s)
	if c.asked.words[as] == nil || len(c.asked.words[as]) >= maxAsked {
		c.asked.words[as] = map[string]bool{}
	}
	if len(s) <= maxName {
		c.asked.words[as][s] = is
	}
	return is
}

// Repeats reports whether a word contains part of an unencoded value.
func (c *Call) Repeats(s string) bool {
	if len(c.values) == 0 || len(s) < shortest {
		return false
	}
	plain, folded := lower(s), fold(s)
	return c.short[plain] || c.short[folded] || c.index.plain.in(plain) || c.index.folded.in(folded)
}

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

// Full stops storing input, so only listed words stay.
func (c *Call) Full() { c.full = true }
