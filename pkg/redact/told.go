package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Configuration adds a plugin's complete standard input. Of invalid JSON (false), nothing may stay.
func (c *Call) Configuration(b []byte) bool {
	if !json.Valid(b) {
		c.value(string(b))
		return false
	}
	c.told++
	c.awaits--
	c.walk(string(b), place{})
	return true
}

// Ours returns a Call for a peer that receives cniscope's own secrets.
func Ours(secrets ...string) *Call {
	c := &Call{told: 1}
	for _, s := range secrets {
		c.secret(s)
		c.value(s)
	}
	return c
}

// Said redacts the first 16 KiB of a peer's text.
func (c *Call) Said(s string) string { return c.Message(s[:min(len(s), 16<<10)]) }

// Lost notes a truncated input: only listed words may stay.
func (c *Call) Lost() { c.lost, c.asked = true, answers{} }

// Environment adds a plugin's environment and CNI_ARGS ("key=value"). Call it after Name.
func (c *Call) Environment(variables ...string) {
	for _, variable := range variables {
		key, value, _ := strings.Cut(variable, "=")
		if !c.names[value] && len(value) <= maxValue {
			// PWD is the working directory (environ(7)).
			c.scalar(value, place{key: key, depth: 1, secret: key != "PWD" && Confidential(key)})
		}
	}
}

// Arguments adds a plugin's command line.
func (c *Call) Arguments(all ...string) {
	for _, argument := range all {
		if strings.HasPrefix(argument, "-") && strings.Contains(argument, "=") {
			c.Environment(strings.TrimLeft(argument, "-"))
		} else if !c.names[argument] && len(argument) <= maxValue {
			c.scalar(argument, place{})
		}
	}
}

// Kept returns the stored bytes of input. Memory is about forty times as much.
func (c *Call) Kept() int { return c.kept }

// maxValue bounds an argument or variable, in bytes.
const maxValue = 32 << 10

// repeatable reports whether a key's value is public if harmless in form: keys of the CNI specification, widespread
// plugins, and environments.
func repeatable(key string) bool {
	switch key {
	case "type", "cniVersion", "bridge", "master", "device", "mode", "dataDir", "interface", "sandbox", "ifname", "mtu",
		"vlan", "vlanId", "subnet", "gateway", "dst", "gw", "datastore_type", "log_level", "logLevel", "pluginLogLevel",
		"nodename", "linkInContainer", "backend", "externalSetMarkChain", "chain", "policy", "address", "range",
		"rangeStart", "rangeEnd", "rangeset", "proto", "protocol", "hostPort", "containerPort", "hostIP", "mac",
		"version", "vethPrefix",
		"HOME", "HOSTNAME", "LANG", "LOGNAME", "NODE_NAME", "SHELL", "TERM", "USER":
		return true
	}
	return false
}

type place struct {
	key, above string // the key, and its object's key
	depth      int    // enclosing objects
	secret     bool   // a key on the path is confidential
	previous   bool   // below prevResult, another plugin's result
}

// walk also adds repeated keys' values: plugins differ in which they use.
func (c *Call) walk(s string, at place) { c.next(&tokens{s}, at) }

// next returns false at the end of an array.
func (c *Call) next(in *tokens, at place) bool {
	switch v := in.next(); v[0] {
	case ']':
		return false
	case '[':
		for c.next(in, at) {
		}
	case '{':
		c.object(in, at)
	case '"':
		c.scalar(unquoted(v), at)
	case 't', 'f', 'n':
	default:
		c.scalar(v, at)
	}
	return true
}

// tokens are those of valid JSON.
type tokens struct{ rest string }

// next returns a bracket, a quoted string or a bare word. json.Decoder allocates for each.
func (t *tokens) next() string {
	t.rest = strings.TrimLeft(t.rest, " \t\r\n,:")
	n := 1
	switch {
	case len(t.rest) == 0:
		return "]"
	case t.rest[0] == '"':
		for ; t.rest[n] != '"'; n++ {
			if t.rest[n] == '\\' {
				n++
			}
		}
		n++
	case strings.IndexByte("{}[]", t.rest[0]) < 0:
		if n = strings.IndexAny(t.rest, " \t\r\n,}]"); n < 0 {
			n = len(t.rest)
		}
	}
	token := t.rest[:n]
	t.rest = t.rest[n:]
	return token
}

func unquoted(quoted string) string {
	if strings.IndexByte(quoted, '\\') < 0 && utf8.ValidString(quoted) {
		return quoted[1 : len(quoted)-1]
	}
	var s string
	_ = json.Unmarshal([]byte(quoted), &s) // valid
	return s
}

var sysctl = regexp.MustCompile(`^(net|kernel|vm|fs)([./][A-Za-z][\w-]{0,30}){1,6}$`)

func (c *Call) object(in *tokens, at place) {
	for token := in.next(); token[0] == '"'; token = in.next() {
		key := unquoted(token)
		switch {
		case at.key == "sysctl" && sysctl.MatchString(key), c.named(key), c.names[key], c.public(key, place{}):
		default:
			c.value(key)
		}
		c.next(in, place{
			key: key, above: at.key, depth: at.depth + 1,
			secret: at.secret || !repeatable(key) && Confidential(key), previous: at.previous || key == "prevResult",
		})
	}
}

func (c *Call) scalar(v string, at place) {
	if at.secret {
		if Confidential(at.key) {
			c.secret(v)
		}
		c.value(v)
		return
	}
	if leaves(v, at) {
		c.Name(strings.Clone(v))
		return
	}
	if c.public(v, at) {
		return
	}
	if strings.HasPrefix(v, "/") {
		c.path(v)
		return
	}
	if inner := strings.TrimSpace(v); strings.HasPrefix(inner, "{") && json.Valid([]byte(inner)) {
		c.walk(inner, at)
		return
	}
	c.value(v)
}

func (c *Call) public(v string, at place) bool {
	switch {
	case isAddress(v) && !c.spells(v), in(v):
		return true
	case repeatable(at.key):
		return c.form(v, true) || wordlike(v) || isInterface(v)
	}
	return at.key == "name" && at.depth == 1 && c.form(v, true)
}

// leaves reports whether spans contain a value.
func leaves(v string, at place) bool {
	switch at.key {
	case "name":
		return at.depth == 1 || at.previous && len(v) <= maxInterface
	case "master", "bridge", "device":
		return len(v) <= maxInterface && wordlike(v)
	case "type":
		return at.depth == 1 || at.depth == 2 && nested(at.above)
	}
	return false
}

// maxInterface is IFNAMSIZ without the NUL.
const maxInterface = 15

func nested(key string) bool {
	switch key {
	case "ipam", "delegate", "delegates", "plugins":
		return true
	}
	return false
}

// path adds what Path would redact, also of a PATH.
func (c *Call) path(v string) {
	all := strings.Split(v[1:], ":/")
	if !slices.ContainsFunc(all, func(path string) bool { return system(strings.Split("/"+path, "/")) }) {
		all = []string{v[1:]}
	}
	for _, path := range all {
		parts, from := strings.Split("/"+path, "/"), 0
		if system(parts) {
			c.untyped(parts)
			continue
		}
		for i, part := range parts {
			switch named := c.named(part); {
			case c.names[part], named && len(part) >= window:
				c.together(parts[from:i])
				from = i + 1
			case !named:
				c.value(part)
			}
		}
		c.together(parts[from:])
	}
}

// untyped adds what does not look typed in a path below a standard directory.
func (c *Call) untyped(parts []string) {
	for _, part := range parts {
		if c.names[part] || c.form(part, true) {
			continue
		}
		for piece := range strings.FieldsFuncSeq(part, func(r rune) bool { return strings.ContainsRune("-._", r) }) {
			if !wordlike(piece) {
				c.value(piece)
			}
		}
	}
}

// together adds consecutive parts, with the slashes around them, unless they are one name: each part may be short.
func (c *Call) together(parts []string) {
	if s := strings.Join(parts, "/"); !c.named(strings.Trim(s, "/")) {
		c.secret("/" + s + "/")
	}
}

func (c *Call) paths(v string) string {
	for word := range strings.FieldsSeq(v) {
		if system(strings.Split(word, "/")) {
			c.path(word)
			v = strings.Replace(v, word, "", 1)
		}
	}
	return v
}

// Confidential reports whether a key names a secret.
func Confidential(key string) bool {
	low := lower(key)
	for _, word := range [...]string{
		"passw", "passphrase", "secret", "token", "apikey", "credential", "authoriz", "bearer", "cookie", "private",
	} {
		if strings.Contains(low, word) {
			return true
		}
	}
	for piece := range strings.FieldsFuncSeq(key, func(r rune) bool { return !isLetter(byte(r)) || r > 'z' }) {
		for piece != "" {
			word := piece[:hump(piece)]
			piece = piece[len(word):]
			if len(word) > len("keys") {
				continue
			}
			switch lower(word) {
			case "key", "keys", "auth", "pass", "pwd", "psk", "pin":
				return true
			}
		}
	}
	return false
}

// common matches public parts of a value: addresses, schemes (a password may begin with "//"), PEM headers.
var common = regexp.MustCompile(`(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?::[0-9]{1,5}|/[0-9]{1,2})?` +
	`|\[(?:[0-9a-fA-F]{0,4}:){2,7}[0-9a-fA-F.]{0,15}\](?::[0-9]{1,5})?|(?:^|[ ,;="'])[a-z]{2,8}://|-----[A-Z ]{5,40}-----`)

// value adds a confidential value, its parts, and its decodings.
func (c *Call) value(v string) {
	parts := []string{v}
	if strings.ContainsAny(v, ".[") || strings.Contains(v, "://") || strings.Contains(v, "-----") {
		parts = common.Split(v, -1)
	}
	for _, part := range parts {
		if strings.HasPrefix(part, "/") && part != v { // part of a URL
			c.path(part)
			continue
		}
		part = c.paths(part)
		c.secret(part)
		for piece := range strings.FieldsFuncSeq(part, func(r rune) bool {
			return strings.ContainsRune(" \t\n\r:;,@&?=/'\"", r)
		}) {
			if piece != part && len(piece) >= shortest && !listed(piece) {
				c.secret(piece)
			}
		}
	}
	c.decoded(v)
	if words := strings.Fields(v); len(words) > 1 { // "Basic dXNlcjpwYXNzd29yZA=="
		for _, word := range words {
			if len(word) >= window && !listed(word) {
				c.decoded(word)
			}
		}
	}
}

func (c *Call) decoded(v string) {
	if u, err := url.QueryUnescape(v); err == nil && u != v {
		c.secret(u)
	}
	encoded := func(ch byte) bool { return isWord(ch) || strings.IndexByte("+/-_=\r\n", ch) >= 0 }
	if run(v, encoded) < len(v) {
		return
	}
	for _, decode := range [...]func(string) ([]byte, error){
		hex.DecodeString, base64.StdEncoding.DecodeString, base64.URLEncoding.DecodeString,
		base64.RawStdEncoding.DecodeString, base64.RawURLEncoding.DecodeString,
	} {
		if decoded, err := decode(v); err == nil && string(decoded) != v {
			c.secret(string(decoded))
		}
	}
}

// maxKept bounds the stored bytes of a run and its delegated plugins: indexes need about forty times as much.
const maxKept = 256 << 10

func (c *Call) secret(s string) {
	if len(s) < shortest || c.values[s] {
		return
	}
	if c.full || c.kept+len(s) > maxKept {
		c.Lost()
		return
	}
	if c.values == nil {
		c.values, c.short = map[string]bool{}, map[string]bool{}
	}
	c.kept += len(s)
	s = strings.Clone(s)
	c.values[s], c.asked = true, answers{}
	c.index.add(s)
	for _, s := range [...]string{lower(s), fold(s)} {
		if len(s) >= shortest && len(s) < window {
			c.short[s] = true
		}
	}
}
