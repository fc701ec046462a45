package nri

import (
	"os"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

// A plugin that was called before the first look is known by its write alone.
func TestAPluginThatWasCalledBeforeTheFirstLook(t *testing.T) {
	for name, c := range map[string]struct {
		read uint64
		want event.AgentState
	}{
		"reads nothing more": {5, event.NRIAnswered},
		"is called late":     {6, ""},
	} {
		l := &looks{late: true}
		other := Other{Actor: event.Actor{PID: 1}, Read: 5, Wrote: 10}
		for range 5 {
			l.add([]Other{other})
		}
		other.Read, other.Wrote = c.read, 11
		all := l.end([]Other{other}, aliveOther, leastLooks)
		harness.Equal(t, all[0].State, c.want, name)
	}
}

func TestWhenANamespaceWasMounted(t *testing.T) {
	if at := mounted(uint32(os.Getpid())); at == 0 || at > time.Now().UnixNano() {
		t.Errorf("%d, not before now", at)
	}
	harness.Equal(t, mounted(0), 0, "of no process")
}
