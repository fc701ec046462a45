package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"iter"
	"net/url"
	"regexp"
	"strings"
)

// Configuration takes what a plugin is told on its standard input: whole, since of a part
// nobody knows what is in the rest. It returns false where that is no JSON, and then nothing of
// it is harmless.
func (c *Call) Configuration(b []byte) bool {
	defer c.index()
	decoder := json.NewDecoder(bytes.NewReader(b))
	decoder.UseNumber()
	var all any
	if decoder.Decode(&all) != nil {
		c.value(string(b))
		return false
	}
	c.told++
	c.awaits--
	c.walk("", 0, all)
	return true
}

// repeatable are the keys of a configuration (CNI specification, its reference plugins and
// those that many nodes have) whose values everybody may know, as long as they have a harmless
// form.
func repeatable(key string) bool {
	switch key {
	case "type", "cniVersion", "bridge", "master", "device", "mode", "dataDir", "interface", "sandbox", "ifname", "mtu", "vlan", "vlanId", "subnet", "gateway",
		"dst", "gw", "datastore_type", "log_level", "logLevel", "pluginLogLevel", "nodename", "linkInContainer", "backend", "externalSetMarkChain", "chain", "policy",
		"address", "range", "rangeStart", "rangeEnd", "rangeset", "proto", "protocol", "hostPort", "containerPort", "hostIP", "mac", "version", "vethPrefix":
		return true
	}
	return false
}

// walk takes the values of a configuration. depth counts the objects around: a name is the
// network's only at the top, or of a delegate.
func (c *Call) walk(key string, depth int, v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, inner := range v {
			if !c.form(k, true) {
				c.value(k)
			}
			c.walk(k, depth+1, inner)
		}
	case []any:
		for _, inner := range v {
			c.walk(key, depth, inner)
		}
	case json.Number:
		c.walk(key, depth, v.String())
	case string:
		c.text(key, depth, v)
	}
}

// text takes a value that is a string.
func (c *Call) text(key string, depth int, v string) {
	known := repeatable(key) || key == "name" && depth == 1 || strings.HasPrefix(v, "/")
	if !names(key) && (isAddress(v) || known && c.form(v, true)) {
		return
	}
	if depth <= 2 && (key == "type" || key == "name" && depth == 1) {
		c.Name(v) // which leaves in a span
		return
	}
	var inner any
	if strings.HasPrefix(strings.TrimSpace(v), "{") && json.Unmarshal([]byte(v), &inner) == nil {
		c.walk(key, depth, inner)
		return
	}
	c.value(v)
}

// common is what is no secret inside of a value: addresses, and what many texts have.
var common = regexp.MustCompile(`(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?::[0-9]{1,5}|/[0-9]{1,2})?|[a-z]{2,8}://|-----[A-Z ]{5,40}-----`)

// value takes one that must not be repeated, and what it may be decoded to.
func (c *Call) value(v string) {
	for _, part := range common.Split(v, -1) {
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

func (c *Call) secret(s string) {
	if len(s) < shortest {
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
