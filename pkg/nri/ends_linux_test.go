package nri

import (
	"testing"

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
