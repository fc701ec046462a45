package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
)

// repeated marks what of a message is in the values, in any spelling: the windows of the
// message are few, so they are kept, and all spellings of the values go past them.
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

// spellings gives each way in which a value is known to be written; cases are not told apart
// later. Of base64 each of the three ways in which it may lie in what is encoded with it
// ("user:token"), without what the bytes around have a part in.
func spellings(v string, give func([]byte)) {
	give([]byte(v))
	var escaped bytes.Buffer
	encoder := json.NewEncoder(&escaped)
	_ = encoder.Encode(v) // into memory
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(v)
	for _, line := range bytes.Split(escaped.Bytes(), []byte("\n")) {
		give(bytes.Trim(line, `"`))
	}
	for _, quoted := range [...]string{strconv.Quote(v), strconv.QuoteToASCII(v)} {
		give([]byte(quoted[1 : len(quoted)-1]))
		if strings.Contains(quoted, `\`) { // as part of what is quoted once more
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

// sieve finds windows of eight bytes, each of which is a number, in what passes.
type sieve struct {
	fold  bool
	hits  map[uint64]bool
	at    []int    // where in the message each byte lies that windows are made of
	bytes []byte   // which those are
	may   []uint64 // a bit for each hash of a window: most of what passes has none
}

func newSieve(message string, fold bool) *sieve {
	s := &sieve{fold: fold, hits: make(map[uint64]bool, len(message)), may: make([]uint64, 1<<(sieveBits-6))}
	for i := range len(message) {
		if ch, ok := s.letter(message[i]); ok {
			s.at, s.bytes = append(s.at, i), append(s.bytes, ch)
		}
	}
	s.windows(s.bytes, func(_ int, w uint64) {
		s.hits[w] = false
		h := hash(w)
		s.may[h>>6] |= 1 << (h & 63)
	})
	return s
}

// sieveBits makes the filter 8 KiB: of a message of 1 KiB it lets one in 64 through.
const sieveBits = 16

func hash(w uint64) uint64 { return w * 0x9E3779B97F4A7C15 >> (64 - sieveBits) } // Fibonacci hashing (Knuth, TAOCP 3, 6.4)

// letter is what counts of a byte; false if nothing does.
func (s *sieve) letter(ch byte) (byte, bool) {
	switch {
	case isUpper(ch):
		return ch | 0x20, true
	case !s.fold, isLetter(ch), isDigit(ch), ch >= 0x80:
		return ch, true
	}
	return 0, false
}

func (s *sieve) windows(b []byte, give func(end int, w uint64)) {
	var w uint64
	for i, ch := range b {
		if w = w<<8 | uint64(ch); i >= window-1 {
			give(i, w)
		}
	}
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

// mark marks all of the message between the first and the last byte of each window that was found.
func (s *sieve) mark(marks []mark) {
	marked := 0
	s.windows(s.bytes, func(end int, w uint64) {
		if !s.hits[w] {
			return
		}
		for i := max(marked, s.at[end-window+1]); i <= s.at[end]; i++ {
			marks[i] = drop
		}
		marked = s.at[end] + 1
	})
}
