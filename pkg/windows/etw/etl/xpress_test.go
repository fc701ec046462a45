package etl

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/etwtest"
)

// Of [MS-XCA] 3.1.
func TestTheSpecificationsExamples(t *testing.T) {
	for want, in := range map[string]string{
		"abcdefghijklmnopqrstuvwxyz": "\x3f\x00\x00\x00abcdefghijklmnopqrstuvwxyz",
		strings.Repeat("abc", 100):   "\xff\xff\xff\x1fabc\x17\x00\x0f\xff\x26\x01",
	} {
		if got, err := expand(nil, []byte(in), 1000); err != nil || string(got) != want {
			t.Errorf("%q, %v", got, err)
		}
	}
}

func TestExpandUndoesCompression(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for n := range 300 {
		in := make([]byte, random.IntN(1<<(n%17)))
		for i := range in {
			in[i] = byte(random.IntN(1 + n%7*n%50))
		}
		if n%10 == 0 { // a long match
			in = append(in, make([]byte, random.IntN(1<<18))...)
		}
		got, err := expand(nil, etwtest.Compress(in), len(in))
		if err != nil || !bytes.Equal(got, in) {
			t.Fatalf("%d: of %d bytes %d come back: %v", n, len(in), len(got), err)
		}
		if len(in) > 0 {
			if _, err := expand(nil, etwtest.Compress(in), len(in)-1); err == nil {
				t.Fatalf("%d: it expands to more than it may", n)
			}
		}
	}
}

func TestBrokenCompression(t *testing.T) {
	for name, in := range map[string]string{
		"what was never there": "\x00\x00\x00\x80\x18\x00",
		"a length that is cut": "\x00\x00\x00\x40a\x07\x00",
		"one of two bytes":     "\x00\x00\x00\x40a\x07\x00\xff\xff",
		"one that is too low":  "\x00\x00\x00\x40a\x07\x00\x0f\xff\x01\x00",
	} {
		if got, err := expand(nil, []byte(in), 1000); err == nil {
			t.Errorf("%s: %q", name, got)
		}
	}
}
