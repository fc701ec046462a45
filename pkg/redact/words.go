package redact

import (
	_ "embed"
	"strings"
	"sync"
)

//go:embed words.txt
var list string

// words are those of words.txt, which `make words` writes.
var words = sync.OnceValue(func() map[string]struct{} {
	all := make(map[string]struct{}, 16<<10)
	for word := range strings.Lines(list) {
		all[strings.TrimSuffix(word, "\n")] = struct{}{}
	}
	return all
})

// listed reports whether s is a word of the list, in any case, or several written as one:
// "NetworkUnavailable", "podCIDRs".
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

// maxParts is how many words one may consist of: what is named so has no more.
const maxParts = 6

// hump is where the first word of a name in camel case ends: behind "IPAM" of "IPAMError",
// behind "CIDRs" of "CIDRsFull".
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

// known reports whether a word in lower case is in the list, perhaps in another form: the list
// has "marshal", not "unmarshaled".
func known(s string) bool {
	if in(s) || len(s) == 1 && isLetter(s[0]) {
		return true
	}
	if len(s) < minStem || len(s) > maxWord || strings.Trim(s, letters) != "" {
		return false
	}
	for _, prefix := range [...]string{"", "un", "re", "non", "pre", "de", "mis", "dis", "sub", "over", "multi", "auto", "inter"} {
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

// minStem is the shortest word that endings are put to.
const minStem = 4

// maxWord is longer than any word.
const maxWord = 24

func in(word string) bool {
	_, is := words()[word]
	return is
}
