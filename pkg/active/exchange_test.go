package active

import (
	"fmt"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/test/harness"
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

// What no wait can be about takes no room from later deeds.
func TestWhatEndedBeforeIsForgotten(t *testing.T) {
	at := func(start, end int64) model.Interval { return model.Interval{Start: start, End: end} }
	a := &agent{}
	for _, when := range []model.Interval{at(0, 99), at(90, 100), at(150, 200)} {
		a.deeds = append(a.deeds, deed{fact: &model.Fact{When: when}})
		a.spells.all = append(a.spells.all, model.Spell{Interval: when})
	}
	(&Agents{known: map[event.Process]*agent{"a": a}}).Expire(100)
	harness.Equal(t, fmt.Sprint(len(a.deeds), len(a.spells.all)), "2 2", "deeds and states")
}

func TestTheLongestDeedsStay(t *testing.T) {
	a := &agent{}
	cl := &claim{first: &connection{work: &work{agent: a}}}
	for i := range int64(300) {
		cl.did(deed{fact: &model.Fact{When: model.Interval{End: 300 - i}}})
	}
	length := func(i int) int64 { return a.deeds[i].fact.When.End }
	n := len(a.deeds)
	harness.Equal(t, fmt.Sprint(n, length(0), length(n-2), length(n-1)), "256 300 46 1", "deeds and lengths")
}
