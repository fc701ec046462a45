package redact

import (
	"regexp"
	"strconv"
	"strings"
)

// Program returns what may leave of a program's name. It is a file's name, and mostly in no
// list; so it may also be words that are in none, as long as they look like some.
func (c *Call) Program(name string) string {
	if c.Harmless(name) || !c.lost && wordlike(name) && !c.Repeats(name) {
		return name
	}
	return placeholder(name)
}

// wordlike tells whether a name is made of what people type: short words in one case, with a
// number behind them perhaps; and what the kernel puts between them ("kworker/u8:2+netns").
func wordlike(name string) bool {
	pieces := 0
	for piece := range strings.FieldsFuncSeq(name, func(r rune) bool { return strings.ContainsRune("-._+/:()", r) }) {
		word := strings.TrimRight(piece, "0123456789")
		if pieces++; pieces > maxParts || len(word) > maxTyped || len(piece)-len(word) > maxSuffix || strings.Trim(word, letters) != "" {
			return false
		}
		if tail := word[min(1, len(word)):]; tail != lower(tail) && word != strings.ToUpper(word) {
			return false
		}
	}
	return pieces > 0
}

// maxTyped is how long a word of a program's name is at most: what the kernel keeps of one
// (TASK_COMM_LEN, less the NUL).
const maxTyped = 15

// Argument tells whether a command's argument may leave that is a name: of an interface, a table, a chain.
func (c *Call) Argument(s string) bool {
	return c.Harmless(s) || !c.lost && isInterface(s) && !c.Repeats(s)
}

// predictable are the names that udev gives (systemd.net-naming-scheme(7)): "enp3s0f1np1".
var predictable = regexp.MustCompile(`^(en|ib|sl|wl|ww)([bopsvfn][0-9]{1,5}){1,5}(np[0-9]{1,3})?(\.[0-9]{1,4})?$`)

// isInterface tells whether s looks like an interface that a plugin named: a listed word and
// hexadecimal digits, in what an interface's name may have (IFNAMSIZ, less the NUL).
func isInterface(s string) bool {
	if predictable.MatchString(s) {
		return true
	}
	word := strings.TrimRight(s, "0123456789abcdef-")
	for ; len(word) < len(s); word = s[:len(word)+1] { // "lxc" loses its last letter above
		if len(word) > 1 && in(word) {
			return len(s) <= 15
		}
	}
	return false
}

// Setting returns what may leave of a sysctl, named by its path, and its value: numbers, or a
// word such as the name of an algorithm; none of what is a secret by its nature.
func (c *Call) Setting(key, value string) (string, string) {
	parts := strings.Split(key, "/")
	for i, part := range parts {
		if !c.Argument(part) {
			parts[i] = placeholder(part)
		}
	}
	if namesSecret(key) || c.Repeats(value) {
		return strings.Join(parts, "/"), placeholder(value)
	}
	fields := strings.Fields(value)
	for i, field := range fields {
		_, err := strconv.ParseInt(field, 10, 32)
		if _, large := strconv.ParseUint(field, 10, 32); err != nil && large != nil && !c.form(field, true) || i >= maxFields {
			return strings.Join(parts, "/"), placeholder(value)
		}
	}
	return strings.Join(parts, "/"), value
}

// maxFields is how many numbers a setting has: net.ipv4.tcp_mem has three, kernel.sem four.
const maxFields = 4
