package spool

import (
	"fmt"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

func TestMemoryRemovesInOrderAndKnowsItsSize(t *testing.T) {
	for _, test := range []struct {
		i, n int
		want string
	}{
		{0, 0, "0: [1 2 3 4] 10"},
		{0, 1, "1: [2 3 4] 9"},
		{0, 9, "4: [] 0"},
		{1, 2, "2: [1 4] 5"},
		{3, 2, "1: [1 2 3] 6"},
		{4, 1, "0: [1 2 3 4] 10"},
		{9, 1, "0: [1 2 3 4] 10"},
		{0, -1, "0: [1 2 3 4] 10"},
		{2, -1, "0: [1 2 3 4] 10"},
	} {
		m := Memory[int]{Bytes: func(n int) int { return n }}
		for n := range 4 {
			m.Add(n + 1)
		}
		harness.Equal(t, fmt.Sprintf("%d: %v %d", m.Remove(test.i, test.n), m.Held(), m.Size()), test.want, test.i, test.n)
	}
	unsized := Memory[int]{}
	unsized.Add(7)
	harness.Equal(t, unsized.Size(), 0)
}
