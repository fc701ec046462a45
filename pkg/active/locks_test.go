package active

import (
	"fmt"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/test/harness"
)

func TestLocksAreBounded(t *testing.T) {
	l := NewLocks(4, nil)
	for i := range 100 {
		for j := range 100 {
			l.take(fmt.Sprint("/run/lock", i), hold{by: event.Process(fmt.Sprint(j)), since: int64(j)})
		}
	}
	if n := len(l.paths); n != 4 || len(l.paths["/run/lock0"]) != 64 {
		t.Errorf("%d locks", n)
	}
	held := len(l.paths["/run/lock0"])
	l.take("/run/lock0", hold{by: "99", since: 100})
	harness.Equal(t, len(l.paths["/run/lock0"]), held, "holders after one took it again")
	l.release("/run/lock0", "99", 101)
	l.take("/run/lock0", hold{by: "99", since: 102})
	harness.Equal(t, l.paths["/run/lock0"][holdsMax-1].since, 102, "it begins again after it was released")
	for j := range 100 {
		l.Gone(event.Process(fmt.Sprint(j)), 200)
	}
	harness.Equal(t, len(l.held), 0, l.held, "are held")
	if l.Prune(int64(2 * time.Minute)); len(l.paths) != 0 {
		t.Errorf("%d locks that nobody has", len(l.paths))
	}
}

func TestLocksWithoutAPathAreNotOne(t *testing.T) {
	l := NewLocks(4, nil)
	for _, path := range []string{"", "/run/lock"} {
		l.Wait(1, &event.Wait{Process: "a", Kind: event.WaitLock, Path: path}, nil)
	}
	harness.Equal(t, len(l.paths), 1, "locks")
}

// A free lock is known for a minute, a held one always.
func TestWhichLocksAreForgotten(t *testing.T) {
	minute := int64(time.Minute)
	for _, test := range []struct {
		until []int64
		now   int64
		known bool
	}{
		{[]int64{10}, minute + 10, true},
		{[]int64{10}, minute + 11, false},
		{[]int64{10, 20}, minute + 20, true},
		{[]int64{20, 10}, minute + 20, true},
		{[]int64{20, 10}, minute + 21, false},
		{[]int64{10, 0}, 9 * minute, true},
		{[]int64{0, 10}, 9 * minute, true},
	} {
		l := NewLocks(4, nil)
		for i, until := range test.until {
			by := event.Process(fmt.Sprint(i))
			l.take("/run/lock", hold{by: by, since: 1})
			if until != 0 {
				l.release("/run/lock", by, until)
			}
		}
		l.Prune(test.now)
		harness.Equal(t, len(l.paths) == 1, test.known, test.until, test.now)
	}
}

// A busy thread's rests are joined, and bounded.
func TestRestsAreBounded(t *testing.T) {
	gap := int64(between)
	p := &Process{Call: &model.Call{}}
	var all []model.Interval
	for _, test := range []struct {
		start, end int64
		want       string
	}{
		{0, 10, "[{0 10}]"},
		{10 + gap, 20 + gap, fmt.Sprintf("[{0 %d}]", 20+gap)},
		{5, 15, fmt.Sprintf("[{0 %d}]", 20+gap)},
		{21 + 2*gap, 30 + 2*gap, fmt.Sprintf("[{0 %d} {%d %d}]", 20+gap, 21+2*gap, 30+2*gap)},
		{0, 40 + 2*gap, fmt.Sprintf("[{0 %d}]", 40+2*gap)},
	} {
		all = p.idle(all, model.Interval{Start: test.start, End: test.end})
		harness.Equal(t, fmt.Sprint(all), test.want)
	}
	for i := range int64(idleMax + 5) {
		all = p.idle(all, model.Interval{Start: (3*i + 9) * gap, End: (3*i + 10) * gap})
	}
	harness.Equal(t, len(all), idleMax, "rests")
	harness.Equal(t, p.Call.Cut["waits"], 6, "rests that are counted only")
	all = p.idle(all, model.Interval{Start: all[idleMax-1].End, End: all[idleMax-1].End + 7})
	harness.Equal(t, len(all), idleMax, "rests after one that goes on")
}

func TestNamesOfInterfacesAreBounded(t *testing.T) {
	n := NewInterfaces(10)
	for i := range uint32(100) {
		n.put(place{"1", i}, fmt.Sprint("eth", i))
		n.put(place{"1", i}, fmt.Sprint("net", i))
	}
	if len(n.names) != 10 || len(n.order) != 10 || n.names[place{"1", 99}] != "net99" {
		t.Errorf("%d names, in an order of %d", len(n.names), len(n.order))
	}
}
