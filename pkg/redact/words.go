package redact

import (
	_ "embed"
	"hash/maphash"
	"math/bits"
	"strings"
	"sync"
)

//go:embed words.txt
var list string

// words holds the listed words; `make words` generates words.txt.
var words = sync.OnceValue(func() *lexicon {
	l := &lexicon{seed: maphash.MakeSeed(), lines: make([]uint32, slots(strings.Count(list, "\n")))}
	at := uint32(0)
	for line := range strings.Lines(list) {
		at += uint32(len(line))
		slot := l.slot(line[:len(line)-1])
		for l.lines[slot] != 0 {
			slot = l.next(slot)
		}
		l.lines[slot] = at
	}
	return l
})

// lexicon holds line ends in list, hashed; 0 is an empty slot. It needs a sixth of a map's memory, and the garbage
// collector skips it.
type lexicon struct {
	seed  maphash.Seed
	lines []uint32 // see slots
}

// slots returns a power of two, less than three quarters full.
func slots(words int) int { return 1 << bits.Len(uint(words*4/3)) }

func (l *lexicon) slot(word string) int {
	return int(maphash.String(l.seed, word)) & (len(l.lines) - 1)
}

func (l *lexicon) next(slot int) int { return (slot + 1) & (len(l.lines) - 1) }

func (l *lexicon) has(word string) bool {
	for slot := l.slot(word); l.lines[slot] != 0; slot = l.next(slot) {
		before, found := strings.CutSuffix(list[:l.lines[slot]-1], word)
		if found && (before == "" || before[len(before)-1] == '\n') {
			return true
		}
	}
	return false
}

func listed(s string) bool {
	for parts := 0; ; parts++ {
		if known(lower(s)) {
			return true
		}
		part := s[:hump(s)]
		s = s[len(part):]
		if s == "" || parts > maxParts || len(part) < 2 || !known(lower(part)) {
			return false
		}
	}
}

const maxParts = 6

// hump returns the length of a joined word's first part: "IPAM" of "IPAMError", "CIDRs" of "CIDRsFull".
func hump(s string) int {
	i := 1
	for i < len(s) && isUpper(s[i]) {
		i++
	}
	switch {
	case i == len(s):
		return i
	case i > 1 && isUpper(s[0]) && s[i] == 's' && (i+1 == len(s) || isUpper(s[i+1])):
		return i + 1
	case i > 1 && isUpper(s[0]):
		return i - 1
	case i > 1: // a lower letter, then upper ones
		return 1
	}
	for i < len(s) && !isUpper(s[i]) {
		i++
	}
	return i
}

// known reports whether a word is listed, or a form of a listed word: "marshal" covers "unmarshaled".
func known(s string) bool {
	if in(s) || len(s) == 1 && isLetter(s[0]) {
		return true
	}
	if len(s) < minStem || len(s) > maxWord || run(s, isLetter) < len(s) {
		return false
	}
	for _, prefix := range [...]string{
		"", "un", "re", "non", "pre", "de", "mis", "dis", "sub", "over", "multi", "auto", "inter",
	} {
		stem, ok := strings.CutPrefix(s, prefix)
		if !ok {
			continue
		}
		if prefix != "" && len(stem) >= minStem && in(stem) {
			return true
		}
		for _, ending := range [...]struct{ is, was string }{
			{"s", ""},
			{"es", ""},
			{"ies", "y"},
			{"ed", ""},
			{"d", ""},
			{"ied", "y"},
			{"ing", ""},
			{"ing", "e"},
			{"er", ""},
			{"ier", "y"},
			{"r", ""},
			{"or", ""},
			{"or", "e"},
			{"ly", ""},
			{"able", ""},
			{"able", "e"},
			{"ment", ""},
			{"ness", ""},
			{"ion", ""},
			{"ion", "e"},
		} {
			if root, ok := strings.CutSuffix(stem, ending.is); ok && len(root) >= minStem && in(root+ending.was) {
				return true
			}
		}
	}
	return false
}

const (
	minStem = 4  // of words that may get endings
	maxWord = 24 // exceeds all words
)

func in(word string) bool { return words().has(word) }
