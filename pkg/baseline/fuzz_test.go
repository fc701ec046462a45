package baseline

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
)

// Any file is refused, or gives a usable book that is written identically.
func FuzzParse(f *testing.F) {
	s := newStream(1)
	f.Add([]byte(`{"cniscope":"baseline","version":1,"entries":[]}`))
	for _, calls := range []int{5, 400} {
		s.of(calls, logNormal(150*time.Millisecond, 0.3))
		data := harness.Must(json.Marshal(s.Document()))(f)
		f.Add(data)
	}
	s.of(8, constant(time.Second))
	s.Build = "2"
	s.of(1, constant(time.Second))
	data, _ := json.Marshal(s.Document())
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := Parse(data)
		if err != nil {
			return
		}
		b := d.Book()
		written := harness.Must(json.Marshal(b.Document()))(t)
		if again, err := Parse(written); err != nil {
			t.Fatalf("%v: %s", err, written)
		} else if twice, _ := json.Marshal(again.Book().Document()); string(twice) != string(written) {
			t.Fatalf("written again:\n%s\n%s", written, twice)
		}
		for _, k := range b.Known() {
			for range window + 1 {
				for _, f := range b.Take(Call{Key: k.Key, Took: time.Second}, floor).Findings {
					_ = f.String()
				}
			}
		}
		if _, err := Parse(must(json.Marshal(b.Document()))); err != nil {
			t.Fatal(err)
		}
	})
}

func must(data []byte, _ error) []byte { return data }

// full fills all keys with durations from microseconds to hours.
func full(b *Book, calls int, build string) {
	s := newStream(1)
	for i := range Keys {
		k := Key{Network: "pods", Plugin: "bridge", Command: "ADD", Program: string(rune('a'+i%26)) + string(rune('a'+i/26))}
		for range calls {
			b.Take(Call{Key: k, Edition: Edition{build, "a"}, Took: logNormal(100*time.Millisecond, 3)(s.random)}, floor)
		}
	}
}

// The largest document fits into the first line of a recording.
func TestTheLargestDocument(t *testing.T) {
	var b Book
	full(&b, Most-1, "1")
	full(&b, Compared/2, "2") // not yet compared
	data := harness.Must(json.Marshal(b.Document()))(t)
	if len(data) > 900<<10 {
		t.Errorf("%d baselines are %d bytes long", b.Len(), len(data))
	}
}
