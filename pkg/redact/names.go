package redact

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Program returns a program's redacted name. Few names are listed, so those that look like words stay.
func (c *Call) Program(name string) string {
	if c.Harmless(name) || c.answer(name, (*Call).looksTyped, asTyped) {
		return name
	}
	return placeholder(name)
}

func (c *Call) looksTyped(name string) bool { return !c.lost && wordlike(name) && !c.Repeats(name) }

// wordlike reports whether a name looks typed: short words in one case, an optional number, the kernel's separators
// ("kworker/u8:2+netns").
func wordlike(name string) bool {
	pieces := 0
	for piece := range strings.FieldsFuncSeq(name, func(r rune) bool { return strings.ContainsRune("-._+/:()", r) }) {
		word := strings.TrimRight(piece, "0123456789")
		pieces++
		if pieces > maxParts || len(word) > maxTyped || len(piece)-len(word) > maxSuffix ||
			run(word, isLetter) < len(word) {
			return false
		}
		if tail := word[min(1, len(word)):]; tail != lower(tail) && word != strings.ToUpper(word) {
			return false
		}
	}
	return pieces > 0
}

// maxTyped is TASK_COMM_LEN without the NUL.
const maxTyped = 15

// named reports whether a key or a part of a path is public. A long name consists of listed words: secrets of short
// pieces have single letters, adjacent separators or more numbers.
func (c *Call) named(s string) bool {
	is := len(s) < window || run(s, isLetter) == len(s) || countDigits(s) <= 1 && typed.MatchString(s)
	return is && c.form(s, true)
}

var typed = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]+((/\.?|[-_.])[A-Za-z][A-Za-z0-9]+)*$`)

// Argument reports whether an interface, table or chain in arguments may stay.
func (c *Call) Argument(s string) bool {
	return c.Harmless(s) || c.answer(s, (*Call).looksNamed, asInterface)
}

func (c *Call) looksNamed(s string) bool { return !c.lost && isInterface(s) && !c.Repeats(s) }

var classes = []string{"en", "ib", "sl", "wl", "ww"}

// predictable matches udev's names (systemd.net-naming-scheme(7)): "enp3s0f1np1".
var predictable = regexp.MustCompile(`^(en|ib|sl|wl|ww)([bopsvfn][0-9]{1,5}){1,5}(np[0-9]{1,3})?(\.[0-9]{1,4})?$`)

// usual matches numbered names.
var usual = regexp.MustCompile(`^((eth|net|ens|eno|cni|docker|bond|team|br|flannel|vxlan|vlan|dummy|tun|tap)` +
	`[0-9]{1,4}|(veth|cali|lxc|tap)[0-9a-f]{8,11})$`)

// isInterface reports whether s looks like udev's interface, or a plugin's: a listed word and hexadecimal digits.
func isInterface(s string) bool {
	if len(s) > 2 && slices.Contains(classes, s[:2]) && predictable.MatchString(s) {
		return true
	}
	word := strings.TrimRight(s, "0123456789abcdef-")
	for ; len(word) < len(s); word = s[:len(word)+1] { // "lxc" loses its last letter above
		if len(word) > 1 && in(word) {
			return len(s) <= maxInterface
		}
	}
	return false
}

// Setting redacts a sysctl's path and value. Numbers or one word stay, secret settings do not.
func (c *Call) Setting(key, value string) (string, string) {
	parts := strings.Split(key, "/")
	for i, part := range parts {
		if !c.Argument(part) {
			parts[i] = placeholder(part)
		}
	}
	fields := strings.Fields(value)
	secret := namesSecret(key) || c.Repeats(value) || len(fields) > maxFields
	for _, field := range fields {
		_, err := strconv.ParseInt(field, 10, 32)
		_, large := strconv.ParseUint(field, 10, 32)
		secret = secret || err != nil && large != nil && !c.form(field, true)
	}
	if secret {
		value = placeholder(value)
	}
	return strings.Join(parts, "/"), value
}

// maxFields: kernel.sem has four.
const maxFields = 4
