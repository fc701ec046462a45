package baseline

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
)

func kinds(found []Finding) (all []Kind) {
	for _, f := range found {
		all = append(all, f.Kind)
	}
	return all
}

// The sentence is about the slow calls, not about all of the window.
func TestASpellSaysHowSlowItIs(t *testing.T) {
	s := newStream(1)
	s.of(1000, constant(100*time.Millisecond))
	s.of(5, constant(500*time.Millisecond))
	if len(s.found) != 1 || !strings.HasSuffix(s.found[0].String(), ", by their median 5× as long as usual") ||
		s.found[0].Is.Calls != begins {
		t.Errorf("found %v", s.found)
	}
}

// A change that is undone at once causes no report and keeps the baseline.
func TestAChangeIsUndone(t *testing.T) {
	for name, restart := range map[string]bool{"while it runs": false, "over a restart": true} {
		t.Run(name, func(t *testing.T) {
			s := newStream(1)
			s.of(1000, constant(100*time.Millisecond))
			since := s.Known()[0].Since
			s.Build = "2"
			s.of(30, constant(300*time.Millisecond))
			if restart {
				d := harness.Must(Parse(must(json.Marshal(s.Document()))))(t)
				s.Book = *d.Book()
			}
			s.Build = "1"
			s.of(60, constant(100*time.Millisecond))
			if k := s.Known()[0]; len(s.found) > 0 || k.Usual.Calls < 1000 || k.Since != since || k.Build != "1" {
				t.Errorf("found %v, known is %+v", s.found, k)
			}
		})
	}
}

// Two files of one name, as two directories of CNI_PATH may have.
func TestTwoEditionsInTurn(t *testing.T) {
	s := newStream(1)
	s.of(500, constant(100*time.Millisecond))
	for i := range 1001 {
		s.Build = []string{"1", "2"}[i%2]
		s.of(1, constant(100*time.Millisecond))
	}
	if k := s.Known()[0]; len(s.found) > 0 || k.Usual.Calls < 500 {
		t.Errorf("found %v, known is %+v", s.found, k)
	}
}

// Every end of a spell is reported.
func TestASpellEndsWithWhatItIsMeasuredBy(t *testing.T) {
	for name, end := range map[string]func(s *stream){
		"an upgrade": func(s *stream) {
			s.Build = "2"
			s.of(1, constant(time.Second))
		},
		"others that drive it out": func(s *stream) {
			for i := range Keys {
				s.Program = fmt.Sprint("command-", i)
				s.of(Enough+window, constant(time.Millisecond))
			}
			s.calls += stale
			s.Program = "another"
			s.of(1, constant(time.Second))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStream(1)
			s.of(1000, constant(100*time.Millisecond))
			s.of(10, constant(time.Second))
			end(s)
			if want := []Kind{Slower, Ended}; !slices.Equal(kinds(s.found), want) ||
				s.found[1].Key.String() != "cilium-cni ADD" || s.Slower() != 0 {
				t.Errorf("found %v", s.found)
			}
		})
	}
}

// Invented names displace no well-known key.
func TestNamesThatAreMadeUpDriveOutNoOther(t *testing.T) {
	s := newStream(1)
	s.of(1000, constant(100*time.Millisecond))
	for i := range 10 * Keys {
		s.Network = fmt.Sprint("tenant-", i)
		s.of(2, constant(time.Millisecond))
	}
	s.Network = "pods"
	if a := s.of(1, constant(time.Second))[0]; !a.Above || s.Len() != Keys || s.Forgotten() != 9*Keys+1 {
		t.Errorf("%+v of %d, %d were forgotten", a, s.Len(), s.Forgotten())
	}
}

// The document is readable after any duration.
func FuzzTook(f *testing.F) {
	for _, took := range []int64{0, -1, 1, int64(longest), int64(longest) + 1, math.MaxInt64, math.MinInt64} {
		f.Add(took, int64(time.Second))
	}
	f.Fuzz(func(t *testing.T, one, other int64) {
		s := newStream(1)
		for i := range 2 * Compared {
			s.Build = fmt.Sprint(i / Compared)
			for _, took := range []int64{one, other} {
				s.of(1, constant(time.Duration(took)))
			}
			if i%20 == 7 || i == Compared {
				if _, err := Parse(must(json.Marshal(s.Document()))); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, found := range s.found {
			_ = found.String()
		}
		for _, k := range s.Known() {
			if k.Usual.P99 > longest || k.Usual.Median < 0 {
				t.Fatalf("%+v", k)
			}
		}
	})
}
