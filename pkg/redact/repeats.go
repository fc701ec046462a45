package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"iter"
	"net/url"
	"strconv"
	"strings"
)

// repeated marks repeated values: it stores the message's few windows, and compares all spellings of the values with
// them.
func (c *Call) repeated(message string, marks []mark) {
	if len(message) < window || len(c.values) == 0 {
		return
	}
	asItIs, folded := newSieve(message, false), newSieve(message, true)
	for _, v := range c.values {
		spellings(v, func(spelling []byte) {
			asItIs.pass(spelling)
			folded.pass(spelling)
		})
	}
	asItIs.mark(marks)
	folded.mark(marks)
}

// spellings gives a value in each known encoding, ignoring case; base64 in three alignments, without characters that
// depend on adjacent bytes.
func spellings(v string, give func([]byte)) {
	give([]byte(v))
	var escaped bytes.Buffer
	encoder := json.NewEncoder(&escaped)
	_ = encoder.Encode(v) // memory writes do not fail
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(v)
	for _, line := range bytes.Split(escaped.Bytes(), []byte("\n")) {
		give(bytes.Trim(line, `"`))
	}
	for _, quoted := range [...]string{strconv.Quote(v), strconv.QuoteToASCII(v)} {
		give([]byte(quoted[1 : len(quoted)-1]))
		if strings.Contains(quoted, `\`) { // quoted twice
			again := strconv.Quote(quoted)
			give([]byte(again[1 : len(again)-1]))
		}
	}
	give([]byte(url.QueryEscape(v)))
	give([]byte(url.PathEscape(v)))
	give(hex.AppendEncode(nil, []byte(v)))
	for before := range 3 {
		padded := append(make([]byte, before, before+len(v)), v...)
		for _, encoding := range [...]*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			give(encoding.AppendEncode(nil, padded)[(before*8+5)/6:])
		}
	}
}

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

// fold keeps only letters and digits, which quoting does not change.
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

type sieve struct {
	fold  bool
	hits  map[uint64]bool
	at    []int // positions in the message
	bytes []byte
	may   []uint64 // filter: a bit per window hash
}

func newSieve(message string, fold bool) *sieve {
	s := &sieve{fold: fold, hits: make(map[uint64]bool, len(message)), may: make([]uint64, 1<<(sieveBits-6))}
	for i := range len(message) {
		if ch, ok := s.letter(message[i]); ok {
			s.at, s.bytes = append(s.at, i), append(s.bytes, ch)
		}
	}
	for w := range windows(string(s.bytes)) {
		s.hits[w] = false
		h := hash(w)
		s.may[h>>6] |= 1 << (h & 63)
	}
	return s
}

// sieveBits makes a filter of 8 KiB: one window in 64 passes with a message of 1 KiB.
const sieveBits = 16

// hash is Fibonacci hashing (Knuth, TAOCP 3, 6.4).
func hash(w uint64) uint64 { return w * 0x9E3779B97F4A7C15 >> (64 - sieveBits) }

func (s *sieve) letter(ch byte) (byte, bool) {
	switch {
	case isUpper(ch):
		return ch | 0x20, true
	case !s.fold, isLetter(ch), isDigit(ch), ch >= 0x80:
		return ch, true
	}
	return 0, false
}

func (s *sieve) pass(b []byte) {
	var w uint64
	n := 0
	for _, ch := range b {
		ch, ok := s.letter(ch)
		if !ok {
			continue
		}
		w = w<<8 | uint64(ch)
		if n++; n < window {
			continue
		}
		if h := hash(w); s.may[h>>6]&(1<<(h&63)) == 0 {
			continue
		}
		if hit, is := s.hits[w]; is && !hit {
			s.hits[w] = true
		}
	}
}

func (s *sieve) mark(marks []mark) {
	end := window - 1
	for w := range windows(string(s.bytes)) {
		if s.hits[w] {
			dropAll(marks[s.at[end-window+1] : s.at[end]+1])
		}
		end++
	}
}
