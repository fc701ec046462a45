package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"iter"
	"math/bits"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// repeated marks repeated values: it stores the message's few windows, and compares all spellings of the values with
// them.
func (c *Call) repeated(message string, marks []mark) {
	c.index.spots(message, marks)
	if len(message) < window || len(c.values) == 0 {
		return
	}
	var in, hits index
	in.add(message)
	for v := range c.values {
		spellings(v, func(spelling []byte) { in.common(spelling, &hits) })
	}
	hits.spots(message, marks)
}

// spellings gives a value in each known encoding, ignoring case; base64 in three alignments, without characters that
// depend on adjacent bytes.
func spellings(v string, give func([]byte)) {
	if strings.ContainsFunc(v, func(r rune) bool { return r >= 0x80 || !isWord(byte(r)) }) {
		quotations(v, give)
	}
	give(hex.AppendEncode(nil, []byte(v)))
	for before := range 3 {
		padded := append(make([]byte, before, before+len(v)), v...)
		encoded := base64.RawStdEncoding.AppendEncode(nil, padded)[(before*8+5)/6:]
		give(encoded)
		if bytes.ContainsAny(encoded, "+/") {
			give(base64.RawURLEncoding.AppendEncode(nil, padded)[(before*8+5)/6:])
		}
	}
}

func quotations(v string, give func([]byte)) {
	var escaped bytes.Buffer
	encoder := json.NewEncoder(&escaped)
	_ = encoder.Encode(v) // memory writes do not fail
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(v)
	all := []string{url.QueryEscape(v), url.PathEscape(v)}
	for line := range strings.Lines(escaped.String()) {
		all = append(all, strings.Trim(line, "\"\n"))
	}
	for _, quoted := range [...]string{strconv.Quote(v), strconv.QuoteToASCII(v)} {
		all = append(all, quoted[1:len(quoted)-1])
		if strings.Contains(quoted, `\`) { // quoted twice
			again := strconv.Quote(quoted)
			all = append(all, again[1:len(again)-1])
		}
	}
	for i, spelling := range all {
		if spelling != v && !slices.Contains(all[:i], spelling) {
			give([]byte(spelling))
		}
	}
}

type index struct{ plain, folded needles } // folded: of letters and digits

func (x *index) add(s string) {
	x.plain.add(lower(s))
	x.folded.add(fold(s))
}

func (x *index) spots(s string, marks []mark) {
	var plain, folded uint64 // the latest window
	var places [window]int   // positions of folded's bytes
	for i, letters := 0, 0; i < len(s); i++ {
		ch := s[i]
		if isUpper(ch) {
			ch |= 0x20
		}
		plain = plain<<8 | uint64(ch)
		if i >= window-1 && x.plain.has(plain) {
			dropAll(marks[i-window+1 : i+1])
		}
		if !isLetter(ch) && !isDigit(ch) && ch < 0x80 {
			continue
		}
		folded = folded<<8 | uint64(ch)
		places[letters%window] = i
		letters++
		if letters >= window && x.folded.has(folded) {
			dropAll(marks[places[letters%window] : i+1])
		}
	}
}

// common adds shared windows to hits. Plain ones of letters and digits are among the folded.
func (x *index) common(s []byte, hits *index) {
	var plain, folded uint64
	letters, other := 0, -window
	for i, ch := range s {
		if isUpper(ch) {
			ch |= 0x20
		}
		plain = plain<<8 | uint64(ch)
		if !isLetter(ch) && !isDigit(ch) && ch < 0x80 {
			other = i
		} else if folded, letters = folded<<8|uint64(ch), letters+1; letters >= window && x.folded.has(folded) {
			hits.folded.put(folded)
		}
		if i-other < window && i >= window-1 && x.plain.has(plain) {
			hits.plain.put(plain)
		}
	}
}

type needles struct {
	slots []uint64 // hashed, half full
	used  int
}

// empty is no window: it has upper case. Slots hold the difference.
const empty = 'A' * 0x0101010101010101

// slot uses Fibonacci hashing (Knuth, TAOCP 3, 6.4).
func (n *needles) slot(w uint64) int {
	at := int(w * 0x9E3779B97F4A7C15 >> 32 & uint64(len(n.slots)-1))
	for n.slots[at] != w && n.slots[at] != 0 {
		at = (at + 1) & (len(n.slots) - 1)
	}
	return at
}

func (n *needles) has(w uint64) bool {
	return len(n.slots) > 0 && n.slots[n.slot(w^empty)] != 0
}

func (n *needles) put(w uint64) {
	n.grow(1)
	if at := n.slot(w ^ empty); n.slots[at] == 0 {
		n.slots[at] = w ^ empty
		n.used++
	}
}

func (n *needles) grow(more int) {
	if 2*(n.used+more) <= len(n.slots) {
		return
	}
	old := n.slots
	n.slots = make([]uint64, 2<<bits.Len(uint(n.used+more)))
	for _, w := range old {
		if w != 0 {
			n.slots[n.slot(w)] = w
		}
	}
}

func (n *needles) add(s string) {
	n.grow(max(0, len(s)-window+1))
	for w := range windows(s) {
		n.put(w)
	}
}

func (n *needles) in(s string) bool {
	for w := range windows(s) {
		if n.has(w) {
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
