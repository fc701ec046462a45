package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"iter"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Configuration takes what a plugin is told on its standard input: whole, since of a part
// nobody knows what is in the rest. It returns false where that is no JSON, and then nothing of
// it is harmless.
func (c *Call) Configuration(b []byte) bool {
	defer c.index()
	if !json.Valid(b) {
		c.value(string(b))
		return false
	}
	c.told++
	c.awaits--
	c.walk(b, place{})
	return true
}

// Lost says that a plugin was told more than is kept: nobody knows what may be repeated, and
// only listed words stay.
func (c *Call) Lost() { c.lost, c.asked = true, nil }

// Environment takes what a plugin was told by its environment, and by the arguments of CNI:
// "key=value". What names the call is given to Name before.
func (c *Call) Environment(variables ...string) {
	defer c.index()
	for _, variable := range variables {
		key, value, _ := strings.Cut(variable, "=")
		if !c.names[value] && len(value) <= maxValue {
			// PWD is where a shell is (environ(7)), and not a password.
			c.text(value, place{key: key, depth: 1, secret: key != "PWD" && confidential(key)})
		}
	}
}

// Arguments takes what a plugin was told on its command line.
func (c *Call) Arguments(all ...string) {
	defer c.index()
	for _, argument := range all {
		if strings.HasPrefix(argument, "-") && strings.Contains(argument, "=") {
			c.Environment(strings.TrimLeft(argument, "-"))
		} else if !c.names[argument] && len(argument) <= maxValue {
			c.text(argument, place{})
		}
	}
}

// maxValue bounds what is kept of one variable or argument, in bytes: what plugins are told
// on their standard input is kept up to that.
const maxValue = 32 << 10

// repeatable are the keys of a configuration (CNI specification, its reference plugins and
// those that many nodes have) and of environments (environ(7)) whose values everybody may know, as long as they have a harmless
// form.
func repeatable(key string) bool {
	switch key {
	case "type", "cniVersion", "bridge", "master", "device", "mode", "dataDir", "interface", "sandbox", "ifname", "mtu", "vlan", "vlanId", "subnet", "gateway",
		"dst", "gw", "datastore_type", "log_level", "logLevel", "pluginLogLevel", "nodename", "linkInContainer", "backend", "externalSetMarkChain", "chain", "policy",
		"address", "range", "HOME", "HOSTNAME", "LANG", "LOGNAME", "NODE_NAME", "SHELL", "TERM", "USER", "rangeStart", "rangeEnd", "rangeset", "proto", "protocol", "hostPort", "containerPort", "hostIP", "mac", "version", "vethPrefix":
		return true
	}
	return false
}

// place is where in a configuration a value stands.
type place struct {
	key, above string // its key, and that of the object it is in
	depth      int    // how many objects are around
	secret     bool   // a key on the way says so
	previous   bool   // it is what another plugin answered
}

// walk takes the values of a configuration that is valid. Keys may come twice in an object, and
// each plugin decides which of them it takes.
func (c *Call) walk(b []byte, at place) {
	in := json.NewDecoder(bytes.NewReader(b))
	in.UseNumber()
	c.next(in, at)
}

// next takes the next value; false at the end of what it is in.
func (c *Call) next(in *json.Decoder, at place) bool {
	token, err := in.Token()
	if err != nil {
		return false
	}
	switch v := token.(type) {
	case string:
		c.text(v, at)
	case json.Number:
		c.text(v.String(), at)
	case json.Delim:
		if v == '[' {
			for c.next(in, at) {
			}
		}
		if v == '{' {
			c.object(in, at)
		}
		return v == '[' || v == '{'
	}
	return true
}

func (c *Call) object(in *json.Decoder, at place) {
	for {
		token, _ := in.Token()
		key, is := token.(string)
		if !is { // its end
			return
		}
		if !c.form(key, true) {
			c.value(key)
		}
		c.next(in, place{key: key, above: at.key, depth: at.depth + 1, secret: at.secret || confidential(key), previous: at.previous || key == "prevResult"})
	}
}

// text takes a value that is a string or a number.
func (c *Call) text(v string, at place) {
	if at.secret {
		if confidential(at.key) {
			c.secret(v)
		}
		c.value(v)
		return
	}
	if c.public(v, at) {
		return
	}
	if leaves(v, at) {
		c.Name(v)
		return
	}
	if strings.HasPrefix(v, "/") {
		c.path(v)
		return
	}
	if inner := strings.TrimSpace(v); strings.HasPrefix(inner, "{") && json.Valid([]byte(inner)) {
		c.walk([]byte(inner), at)
		return
	}
	c.value(v)
}

// public tells whether anybody may know a value: by its form, or by that and its key.
func (c *Call) public(v string, at place) bool {
	switch {
	case isAddress(v) && !c.spells(v), in(v):
		return true
	case repeatable(at.key):
		return c.form(v, true) || wordlike(v) || isInterface(v)
	}
	return at.key == "name" && at.depth == 1 && c.form(v, true)
}

// leaves tells whether a value leaves in a span anyway: the name of the network, the types of
// plugins, and interfaces that another plugin answered.
func leaves(v string, at place) bool {
	switch at.key {
	case "name":
		return at.depth == 1 || at.previous && len(v) <= maxInterface
	case "type":
		return at.depth == 1 || at.depth == 2 && nested(at.above)
	}
	return false
}

// maxInterface is how long the name of an interface is (IFNAMSIZ, less the NUL).
const maxInterface = 15

// nested tells whether what stands below a key is told to another plugin.
func nested(key string) bool {
	switch key {
	case "ipam", "delegate", "delegates", "plugins":
		return true
	}
	return false
}

// path takes a value that is a path, or several (PATH): of its parts those must not be repeated
// that could not leave in one.
func (c *Call) path(v string) {
	for path := range strings.SplitSeq(v, ":") {
		parts := strings.Split(path, "/")
		for i, part := range parts {
			switch {
			case part == "" || c.names[part] || c.form(part, true):
			case !system(parts[:i]):
				c.value(part)
			default:
				for piece := range strings.FieldsFuncSeq(part, func(r rune) bool { return strings.ContainsRune("-._", r) }) {
					if !wordlike(piece) {
						c.value(piece)
					}
				}
			}
		}
	}
}

// paths takes those below a folder that every system has out of a value with several words.
func (c *Call) paths(v string) string {
	if !strings.Contains(v, " /") {
		return v
	}
	return strings.Join(slices.DeleteFunc(strings.Fields(v), func(word string) bool {
		is := system(strings.Split(word, "/"))
		if is {
			c.path(word)
		}
		return is
	}), " ")
}

// confidential tells whether a key is called as secrets are.
func confidential(key string) bool {
	low := lower(key)
	for _, word := range [...]string{"passw", "passphrase", "secret", "token", "apikey", "credential", "authoriz", "bearer", "cookie", "private"} {
		if strings.Contains(low, word) {
			return true
		}
	}
	for piece := range strings.FieldsFuncSeq(key, func(r rune) bool { return !isLetter(byte(r)) || r > 'z' }) {
		for piece != "" {
			word := lower(piece[:hump(piece)])
			piece = piece[len(word):]
			switch word {
			case "key", "keys", "auth", "pass", "pwd", "psk", "pin":
				return true
			}
		}
	}
	return false
}

// common is what is no secret inside of a value: addresses, and what many texts have.
var common = regexp.MustCompile(`(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?::[0-9]{1,5}|/[0-9]{1,2})?|\[(?:[0-9a-fA-F]{0,4}:){2,7}[0-9a-fA-F.]{0,15}\](?::[0-9]{1,5})?|[a-z]{2,8}://|-----[A-Z ]{5,40}-----`)

// value takes one that must not be repeated, and what it may be decoded to.
func (c *Call) value(v string) {
	for _, part := range common.Split(v, -1) {
		if strings.HasPrefix(part, "/") && part != v { // of a URL
			c.path(part)
			continue
		}
		part = c.paths(part)
		c.secret(part)
		for piece := range strings.FieldsFuncSeq(part, func(r rune) bool { return strings.ContainsRune(" \t\n\r:;,@&?=/'\"", r) }) {
			if piece != part && len(piece) >= shortest && !listed(piece) {
				c.secret(piece)
			}
		}
	}
	for _, decode := range [...]func(string) ([]byte, error){
		hex.DecodeString, base64.StdEncoding.DecodeString, base64.URLEncoding.DecodeString, base64.RawStdEncoding.DecodeString, base64.RawURLEncoding.DecodeString,
		func(s string) ([]byte, error) { u, err := url.QueryUnescape(s); return []byte(u), err },
	} {
		if decoded, err := decode(v); err == nil && string(decoded) != v {
			c.secret(string(decoded))
		}
	}
}

// maxKept bounds what is kept of all that one run and its delegates are told, in bytes, and so
// what each of their texts is compared with: a plugin that calls delegates without an end takes
// neither our memory (some forty times that, for what is looked up) nor our time. Ten delegates with
// configurations of an ordinary size, 4 KiB, have a sixth of it.
const maxKept = 256 << 10

func (c *Call) secret(s string) {
	if len(s) < shortest {
		return
	}
	if c.kept += len(s); c.kept > maxKept {
		c.Lost()
		return
	}
	c.values = append(c.values, s)
	for _, s := range [...]string{lower(s), fold(s)} {
		if len(s) >= shortest && len(s) < window {
			if c.short == nil {
				c.short = map[string]bool{}
			}
			c.short[s] = true
		}
	}
}

// index makes ready what is looked up for every word.
func (c *Call) index() {
	if c.plain == nil {
		c.plain, c.folded = needles{}, needles{}
	}
	for _, v := range c.values[c.indexed:] {
		c.plain.add(lower(v))
		c.folded.add(fold(v))
	}
	c.indexed, c.asked = len(c.values), nil
}

// needles are windows, each of them a number, since it has eight bytes.
type needles map[uint64]struct{}

func (n needles) add(s string) {
	for w := range windows(s) {
		n[w] = struct{}{}
	}
}

func (n needles) in(s string) bool {
	for w := range windows(s) {
		if _, is := n[w]; is {
			return true
		}
	}
	return false
}

func windows(s string) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		var w uint64
		for i := range len(s) {
			if w = w<<8 | uint64(s[i]); i >= window-1 && !yield(w) {
				return
			}
		}
	}
}

// lower maps the letters of ASCII; others are in no word that stays.
func lower(s string) string {
	for i := range len(s) {
		if isUpper(s[i]) {
			b := []byte(s)
			for ; i < len(b); i++ {
				if isUpper(b[i]) {
					b[i] |= 0x20
				}
			}
			return string(b)
		}
	}
	return s
}

// fold is what no quoting changes: letters in lower case, and digits.
func fold(s string) string {
	b := make([]byte, 0, len(s))
	for i := range len(s) {
		if ch := s[i]; isLetter(ch) {
			b = append(b, ch|0x20)
		} else if isDigit(ch) || ch >= 0x80 {
			b = append(b, ch)
		}
	}
	return string(b)
}
