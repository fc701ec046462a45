package active

import (
	"fmt"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

func TestLocksAreBounded(t *testing.T) {
	l := NewLocks(4, nil)
	for i := range 100 {
		for j := range 100 {
			l.take(fmt.Sprint("/run/lock", i), hold{by: event.Process(fmt.Sprint(j)), since: int64(j)})
		}
	}
	if n := len(l.paths); n != 4 || len(l.paths["/run/lock0"]) != holdsMax {
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
