package connector

import (
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

func TestNumbersThatAreMissing(t *testing.T) {
	g := newGaps()
	at := func(now int64, cpu uint32, numbers ...uint32) (lost uint64) {
		for _, n := range numbers {
			lost += g.take(message{cpu: cpu, seq: n}, now)
		}
		return lost
	}
	if n := at(1, 0, 1<<32-2, 1<<32-1, 0, 1) + at(1, 1, 7, 8); n != 0 || g.overdue(100) != 0 {
		t.Errorf("%d are lost, where none is missing", n)
	}
	if at(2, 0, 4, 2, 3); g.overdue(100) != 0 {
		t.Error("what was overtaken is lost")
	}
	at(3, 0, 7)
	harness.Equal(t, g.overdue(3), 0, "are lost too early")
	harness.Equal(t, g.overdue(4), 2, "are lost")
	harness.Equal(t, at(5, 1, 9+missingMax+1), missingMax+1, "are lost")
}

func FuzzParse(f *testing.F) {
	f.Add(make([]byte, messageMax))
	f.Add([]byte{1})
	f.Fuzz(func(_ *testing.T, b []byte) {
		if m, ok := parse(b); ok {
			m.notice()
		}
	})
}
