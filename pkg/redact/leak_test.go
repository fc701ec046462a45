package redact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/harness/spelled"
)

// pair is a configuration with a secret, and a message that repeats it.
type pair struct {
	secret, spelling, where string
	configuration           []byte
	variable, argument      string
	message                 string
	texts                   []string // of which nothing may leave
	part                    string   // the repeated part
}

var alphabets = []string{
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
	"abcdefghijklmnopqrstuvwxyz", "0123456789abcdef", "0123456789",
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", "abcdefghijklmnopqrstuvwxyz0123456789-_.",
	" !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~",
	"abc éßñ漢字\"\\<>&", "!?.,;:-_*#+~", "etaoin shrdlu",
}

var contexts = []string{
	"%s", "refused: bad token %s", "login %s failed", "error=%s", "\"password\":%s,\"user\":\"admin\"", "[%s]", "(%s)", "Authorization: Bearer %s",
	"dial tcp 10.0.0.1:443: connect: connection refused (%s)", "open /etc/cni/%s: no such file or directory", "/%s", "token=%s;", "%s: permission denied", "the quick%sfox",
	strings.Repeat("failed to connect ", 30) + "%s", "&{Token:%s Name:x}", "x%sx", "-%s-", "\\\"%s\\\"", "%[1]s %[1]s",
}

var (
	vocabulary = strings.Fields(list)
	ways       = slices.Sorted(maps.Keys(spelled.Ways())) // map order is random
)

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
		for n := 0; n < 2 || b.Len() < length; n++ {
			b.WriteString(vocabulary[r.IntN(len(vocabulary))] + " ")
		}
	}
	for b.Len() < length {
		b.WriteRune(letters[r.IntN(len(letters))])
	}
	p.secret = strings.TrimSpace(b.String())
	p.complete(r)
	return p
}

// makeShort returns a pair whose secret consists of pieces with numbers, each of which is harmless alone. It may begin
// like a path.
func makeShort(r *rand.Rand) (p pair) {
	var b strings.Builder
	b.WriteString([]string{"", "/", "_", "//"}[r.IntN(4)])
	for b.Len() < 12 || r.IntN(3) > 0 {
		word := vocabulary[r.IntN(len(vocabulary))]
		for r.IntN(2) > 0 && len(word) > 4 {
			word = vocabulary[r.IntN(len(vocabulary))]
		}
		if len(word) > 4 {
			word = word[:1+r.IntN(2)]
		}
		fmt.Fprint(&b, word, r.IntN(1000))
		for n := r.IntN(2); n >= 0; n-- {
			b.WriteByte("-_./: "[r.IntN(6)])
		}
	}
	p.secret = b.String()
	p.complete(r)
	switch r.IntN(6) {
	case 0:
		p.configuration, p.where, p.variable = []byte("{}"), "environment", "DATA="+p.secret
	case 1:
		p.configuration, p.where, p.argument = []byte("{}"), "argument", p.secret
	}
	return p
}

// complete adds a configuration with the secret, and a message with a part of it.
func (p *pair) complete(r *rand.Rand) {
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
	p.spelling = ways[r.IntN(len(ways))]
	text := spelled.Ways()[p.spelling](part)
	p.message = strings.ReplaceAll(contexts[r.IntN(len(contexts))], "%[1]s", "%s")
	p.message = strings.ReplaceAll(p.message, "%s", text)
	p.texts = []string{p.secret}
	if len(part) >= 8 {
		p.part = part
	}
	for _, way := range []string{"hex", "base64, raw", "percent", "quoted"} {
		p.texts = append(p.texts, strings.Trim(spelled.Ways()[way](p.secret), `"\`))
	}
}

func (p *pair) configure(r *rand.Rand) ([]byte, string) {
	type object = map[string]any
	conf := object{
		"cniVersion": "1.0.0", "name": "k8s-pod-network", "type": "bridge", "mtu": 1500,
		"ipam": object{"type": "host-local", "subnet": "10.22.0.0/16"},
	}
	places := []string{
		"value", "nested", "name", "list", "many", "bearer", "userinfo", "key", "ipam", "JSON",
		"base64", "long",
	}
	where := places[r.IntN(len(places))]
	if p.secret != "" && strings.Trim(p.secret, "0123456789") == "" && len(p.secret) < 300 && p.secret[0] != '0' &&
		r.IntN(2) == 0 {
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
		conf["data"] = spelled.Base64(s, "+/", true)
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
	c.Environment(p.variable)
	c.Arguments(p.argument)
	out := c.Message(p.message)
	window, is := spelled.Leaked(out, p.texts...)
	if !is && p.part != "" {
		window, is = spelled.Seen(out, p.spelling, p.part)
	}
	if is {
		t.Errorf("%s: %q of a secret (%s, written %s) leaves\nsecret:  %.200q\nmessage: %.300q\noutput:  %.300q", what,
			window, p.where, p.spelling, p.secret, p.message, out)
		return false
	}
	return true
}

// Random pairs of a configuration and a message that repeats its secret in any spelling: SECRETS_PAIRS sets their
// number, SECRETS_FROM the first, SECRETS_TIME the time limit.
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
	from, _ := strconv.ParseUint(os.Getenv("SECRETS_FROM"), 10, 64)
	begin, workers := time.Now(), 2
	for worker := range workers {
		t.Run(fmt.Sprint(worker), func(t *testing.T) {
			t.Parallel()
			done, failed := 0, 0
			for n := from + uint64(worker); n < from+uint64(pairs) &&
				failed < 10 && time.Since(begin) < limit; n += uint64(workers) {
				p, short := makePair(rand.New(rand.NewPCG(n, 0))), makeShort(rand.New(rand.NewPCG(n, 3)))
				if !p.check(t, fmt.Sprint("pair ", n)) || !short.check(t, fmt.Sprint("short pair ", n)) {
					failed++
				}
				done++
			}
			t.Logf("%d pairs and as many short ones, %d leaked", done, failed)
		})
	}
}

// Pairs that once leaked: of a secret that begins like a path or reads like a key.
func TestPairsThatLeaked(t *testing.T) {
	for _, n := range []uint64{201013, 340919, 495845, 534561, 561408, 668311} {
		makePair(rand.New(rand.NewPCG(n, 0))).check(t, fmt.Sprint("pair ", n))
	}
}

func FuzzRedact(f *testing.F) {
	for i := range 50 {
		p := makePair(rand.New(rand.NewPCG(uint64(i), 1)))
		f.Add(p.secret, p.message, uint64(i))
	}
	for seed := range uint64(60) { // each spelling and place
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
		if p.texts != nil { // append the secret in each spelling
			p.spelling, p.part = ways[seed%uint64(len(ways))], secret
			p.message += " " + spelled.Ways()[p.spelling](secret)
			p.check(t, "fuzzed and spelled")
		}
	})
}

// FuzzTokens compares tokens with those of json.Decoder.
func FuzzTokens(f *testing.F) {
	for _, text := range []string{
		`{"a":[1,-2.5e+3,true,null,"x\"\\","é\ud83d"],"":{}}`, ` [ ] `, `"\\"`, `0`, "{\"\xff\" : [[],{}]\r\n}", `[{"a":{"b":1},"c":false}]`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if !json.Valid(text) {
			t.Skip()
		}
		in, want := &tokens{string(text)}, json.NewDecoder(bytes.NewReader(text))
		want.UseNumber()
		for {
			token, err := want.Token()
			if err != nil {
				break
			}
			got := in.next()
			said := got
			if got[0] == '"' {
				said = unquoted(got)
			}
			if token == nil {
				token = "null"
			}
			harness.Equal(t, said, fmt.Sprint(token), string(text))
		}
		harness.Equal(t, strings.TrimSpace(in.rest), "", "the rest of "+string(text))
	})
}
