package redact

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
)

// Whether something leaked is found out by other means than what is tested: encoders and a
// search of our own.

// spelled are the ways in which a plugin may write a secret.
var spelled = map[string]func(string) string{
	"plain":           func(s string) string { return s },
	"upper":           strings.ToUpper,
	"lower":           strings.ToLower,
	"other case":      func(s string) string { return strings.Map(swapCase, s) },
	"quoted":          func(s string) string { return fmt.Sprintf("%q", s) },
	"quoted in ASCII": func(s string) string { return fmt.Sprintf("%+q", s) },
	"quoted twice":    func(s string) string { return fmt.Sprintf("%q", fmt.Sprintf("%q", s)) },
	"JSON":            func(s string) string { b, _ := json.Marshal(s); return string(b) },
	"JSON in quotes":  func(s string) string { b, _ := json.Marshal(s); return fmt.Sprintf("%q", b) },
	"percent":         func(s string) string { return percent(s, false, "%02X") },
	"percent, lower":  func(s string) string { return percent(s, false, "%02x") },
	"percent, all":    func(s string) string { return percent(s, true, "%02X") },
	"hex":             func(s string) string { return fmt.Sprintf("%x", s) },
	"upper hex":       func(s string) string { return fmt.Sprintf("%X", s) },
	"hex, apart":      func(s string) string { return fmt.Sprintf("% x", s) },
	"bytes":           func(s string) string { return fmt.Sprintf("%d", []byte(s)) },
	"base64":          func(s string) string { return base64Of(s, "+/", true) },
	"base64, raw":     func(s string) string { return base64Of(s, "+/", false) },
	"base64, URL":     func(s string) string { return base64Of(s, "-_", true) },
	"base64, pair":    func(s string) string { return base64Of("admin:"+s, "+/", true) },
	"base64, pair 2":  func(s string) string { return base64Of("root:"+s, "-_", false) },
	"base64, pair 3":  func(s string) string { return base64Of("user1:"+s+"@", "+/", true) },
	"userinfo":        func(s string) string { return "https://admin:" + percent(s, false, "%02X") + "@10.0.0.1:2379/v1" },
	"userinfo, raw":   func(s string) string { return "https://admin:" + s + "@10.0.0.1:2379/v1" },
	"query":           func(s string) string { return "https://10.0.0.1/v1?token=" + percent(s, false, "%02X") },
}

func swapCase(r rune) rune {
	if unicode.IsUpper(r) {
		return unicode.ToLower(r)
	}
	return unicode.ToUpper(r)
}

func percent(s string, all bool, format string) string {
	var b strings.Builder
	for i := range len(s) {
		if ch := s[i]; all || ch < '0' || ch > 'z' || ch > '9' && ch < 'A' || ch > 'Z' && ch < 'a' {
			b.WriteString("%" + fmt.Sprintf(format, ch))
		} else {
			b.WriteByte(ch)
		}
	}
	return b.String()
}

// base64Of encodes as RFC 4648 has it, bit by bit.
func base64Of(s, last string, pad bool) string {
	alphabet := "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789" + last
	var b strings.Builder
	for bit := 0; bit < 8*len(s); bit += 6 {
		n := 0
		for i := bit; i < bit+6; i++ {
			n <<= 1
			if i/8 < len(s) {
				n |= int(s[i/8]) >> (7 - i%8) & 1
			}
		}
		b.WriteByte(alphabet[n])
	}
	for pad && b.Len()%4 > 0 {
		b.WriteByte('=')
	}
	return b.String()
}

// leaked returns eight bytes in a row of any of the texts that are in the output, cases not
// told apart.
func leaked(output string, texts ...string) (string, bool) {
	output = withoutPlaceholders(output)
	in := map[string]bool{}
	for i := range max(0, len(output)-7) {
		in[strings.ToLower(output[i:i+8])] = true
	}
	for _, text := range texts {
		for i := range max(0, len(text)-7) {
			if w := strings.ToLower(text[i : i+8]); in[w] {
				return w, true
			}
		}
	}
	return "", false
}

func withoutPlaceholders(s string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, "‹")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		_, s, _ = strings.Cut(rest, "›")
		b.WriteByte(0)
	}
}

// pair is a configuration with a secret, and a message that repeats it.
type pair struct {
	secret, spelling, where string
	configuration           []byte
	message                 string
	texts                   []string // of which nothing may be seen
}

// alphabets are what secrets are made of.
var alphabets = []string{
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
	"abcdefghijklmnopqrstuvwxyz", "0123456789abcdef", "0123456789",
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", "abcdefghijklmnopqrstuvwxyz0123456789-_.",
	" !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~",
	"abc éßñ漢字\"\\<>&", "!?.,;:-_*#+~", "etaoin shrdlu",
}

// contexts are sentences around a secret.
var contexts = []string{
	"%s", "refused: bad token %s", "login %s failed", "error=%s", "\"password\":%s,\"user\":\"admin\"", "[%s]", "(%s)", "Authorization: Bearer %s",
	"dial tcp 10.0.0.1:443: connect: connection refused (%s)", "open /etc/cni/%s: no such file or directory", "/%s", "token=%s;", "%s: permission denied", "the quick%sfox",
	strings.Repeat("failed to connect ", 30) + "%s", "&{Token:%s Name:x}", "x%sx", "-%s-", "\\\"%s\\\"", "%[1]s %[1]s",
}

func makePair(r *rand.Rand) pair {
	var p pair
	length := 12
	for length < 8<<10 && r.IntN(3) > 0 { // most are short
		length += r.IntN(length)
	}
	length = min(length, 8<<10)
	letters := []rune(alphabets[r.IntN(len(alphabets))])
	var b strings.Builder
	if r.IntN(8) == 0 { // of ordinary words
		all := strings.Fields(list)
		for n := 0; n < 2 || b.Len() < length; n++ { // one alone may be a key, which is no secret
			b.WriteString(all[r.IntN(len(all))] + " ")
		}
	}
	for b.Len() < length {
		b.WriteRune(letters[r.IntN(len(letters))])
	}
	p.secret = strings.TrimSpace(b.String())
	p.configuration, p.where = p.configure(r)

	part := p.secret
	switch cut := r.IntN(len(part)); r.IntN(4) {
	case 0:
		part = part[:len(part)/2]
	case 1:
		part = part[cut:]
	case 2:
		part = part[:cut]
	}
	part = strings.ToValidUTF8(part, "")
	var ways []string
	for way := range spelled {
		ways = append(ways, way)
	}
	// A map's order is not the generator's.
	sortStrings(ways)
	p.spelling = ways[r.IntN(len(ways))]
	text := spelled[p.spelling](part)
	p.message = strings.ReplaceAll(contexts[r.IntN(len(contexts))], "%[1]s", "%s")
	p.message = strings.ReplaceAll(p.message, "%s", text)
	p.texts = []string{p.secret}
	// Less than eight bytes are none too many, whatever they look like; and the quotes around,
	// or the address behind, are no part of it.
	if len(part) >= 8 && !strings.HasPrefix(p.spelling, "userinfo") && p.spelling != "query" {
		p.texts = append(p.texts, part, strings.Trim(text, `"\`))
	}
	for _, way := range []string{"hex", "base64, raw", "percent", "quoted"} {
		p.texts = append(p.texts, strings.Trim(spelled[way](p.secret), `"\`))
	}
	return p
}

func sortStrings(s []string) {
	for i := range s {
		for j := i; j > 0 && s[j] < s[j-1]; j-- {
			s[j], s[j-1] = s[j-1], s[j]
		}
	}
}

// configure puts the secret somewhere.
func (p *pair) configure(r *rand.Rand) ([]byte, string) {
	type object = map[string]any
	conf := object{"cniVersion": "1.0.0", "name": "k8s-pod-network", "type": "bridge", "mtu": 1500, "ipam": object{"type": "host-local", "subnet": "10.22.0.0/16"}}
	places := []string{"value", "nested", "name", "list", "many", "bearer", "userinfo", "key", "ipam", "JSON", "base64", "long"}
	where := places[r.IntN(len(places))]
	if p.secret != "" && strings.Trim(p.secret, "0123456789") == "" && len(p.secret) < 300 && p.secret[0] != '0' && r.IntN(2) == 0 {
		where = "number"
	}
	switch s := p.secret; where {
	case "value":
		conf["token"] = s
	case "nested":
		conf["kubernetes"] = object{"auth": object{"data": s}}
	case "name":
		conf["auth"] = object{"name": s, "type": s, "mode": s}
	case "list":
		conf["tokens"] = []any{"first", 2, s, []any{s}}
	case "many":
		var all []any
		for i := range 300 {
			all = append(all, fmt.Sprint("entry-", i))
		}
		conf["all"] = append(all, s)
	case "bearer":
		conf["header"] = "Bearer " + s
	case "userinfo":
		conf["etcd_endpoints"] = "https://root:" + s + "@10.0.0.1:2379,https://10.0.0.2:2379"
	case "key":
		conf["tokens"] = object{s: true}
	case "ipam":
		conf["ipam"] = object{"type": "host-local", "apiKey": s}
	case "JSON":
		b, _ := json.Marshal(object{"type": "inner", "secret": s})
		conf["config"] = string(b)
	case "base64":
		conf["data"] = base64Of(s, "+/", true)
	case "long":
		conf["padding"], conf["pin"] = strings.Repeat("0123456789abcdef", 1000), s
	case "number":
		conf["pin"] = json.Number(s)
	}
	b, err := json.Marshal(conf)
	if err != nil {
		panic(err)
	}
	return b, where
}

func (p pair) check(t testing.TB, what string) bool {
	var c Call
	c.Name("web-1", "default", "eth0")
	if !c.Configuration(p.configuration) {
		t.Fatalf("%s: no configuration", what)
	}
	out := c.Message(p.message)
	if window, is := leaked(out, p.texts...); is {
		t.Errorf("%s: %q of a secret (%s, written %s) leaves\nsecret:  %.200q\nmessage: %.300q\noutput:  %.300q", what, window, p.where, p.spelling, p.secret, p.message, out)
		return false
	}
	return true
}

// Pairs of a configuration with a secret and a message that repeats it in any spelling:
// SECRETS_PAIRS says how many, SECRETS_TIME how long at most.
func TestNoPartOfASecretLeaves(t *testing.T) {
	pairs, err := strconv.Atoi(os.Getenv("SECRETS_PAIRS"))
	if err != nil {
		pairs = 3000
		if testing.Short() {
			pairs = 300
		}
	}
	limit, err := time.ParseDuration(os.Getenv("SECRETS_TIME"))
	if err != nil {
		limit = time.Hour
	}
	begin, done, failed := time.Now(), 0, 0
	for ; done < pairs && failed < 10 && time.Since(begin) < limit; done++ {
		p := makePair(rand.New(rand.NewPCG(uint64(done), 0)))
		if !p.check(t, fmt.Sprint("pair ", done)) {
			failed++
		}
	}
	t.Logf("%d pairs, %d leaked", done, failed)
}

func FuzzRedact(f *testing.F) {
	for i := range 50 {
		p := makePair(rand.New(rand.NewPCG(uint64(i), 1)))
		f.Add(p.secret, p.message, uint64(i))
	}
	for seed := range uint64(20) {
		f.Add("", "", seed)
	}
	f.Fuzz(func(t *testing.T, secret, message string, seed uint64) {
		secret = strings.ToValidUTF8(secret, "")
		if len(secret) > 8<<10 || len(message) > 32<<10 {
			t.Skip()
		}
		p := pair{secret: secret, spelling: "fuzzed", message: message, texts: []string{secret}}
		if len(secret) < 12 || strings.ContainsAny(secret, "‹›\x00") {
			p.texts = nil
		}
		p.configuration, p.where = p.configure(rand.New(rand.NewPCG(seed, 2)))
		p.check(t, "fuzzed")
	})
}
