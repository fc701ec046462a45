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

func TestTheTableHasRoomForTheList(t *testing.T) {
	if words, room := strings.Count(list, "\n"), len(words().lines); 4*words >= 3*room {
		t.Errorf("%d words in %d slots", words, room)
	}
	for words := range 100_000 {
		if room := slots(words); 4*words >= 3*room || room&(room-1) != 0 {
			t.Fatalf("%d slots for %d words", room, words)
		}
	}
}

func TestFormsOfListedWordsAreKnown(t *testing.T) {
	if listed("eMailName") {
		t.Error("a word with a part of one letter is listed")
	}
	for word, want := range map[string]bool{
		"bridge": true, "bridges": true, "multiport": true, "subchains": true, "unxkqzjv": false, "xkqzjved": false,
	} {
		if known(word) != want {
			t.Errorf("%q is known: %v", word, !want)
		}
	}
}
