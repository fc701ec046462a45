package agents

import (
	"fmt"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
)

// A process with many streams, or a recording of one, does not hold up the reader.
func TestManyStreams(t *testing.T) {
	all := reads{}
	for i := range 4 * readsMax {
		all.add(int64(i), &event.Exchange{Process: "a", Socket: fmt.Sprint("s", i)})
	}
	if _, last := all[stream{"a", fmt.Sprint("s", 4*readsMax-1)}]; !last || len(all) > readsMax {
		t.Errorf("%d are remembered, the last one: %v", len(all), last)
	}
	if all.forget(); len(all) > readsMax*3/4 {
		t.Errorf("%d are left", len(all))
	}
}
