package redact

import (
	"strings"
	"testing"
)

func TestTheListHasItsWordsAndNoOthers(t *testing.T) {
	for line := range strings.Lines(list) {
		word, whole := strings.CutSuffix(line, "\n")
		if !whole || word == "" {
			t.Fatalf("line %q is no word and a newline", line)
		}
		if !in(word) {
			t.Errorf("%q is not in it", word)
		}
		if in(word+"\n") || in("\n"+word) {
			t.Errorf("%q with a newline is in it", word)
		}
	}
	for _, word := range []string{"", "\n", "zzzz", "ini.", list[:20], list[len(list)-20:]} {
		if in(word) {
			t.Errorf("%q is in it", word)
		}
	}
}

func BenchmarkListed(b *testing.B) {
	for b.Loop() {
		listed("unmarshaledXqzv")
		listed("NetworkUnavailable")
	}
}
