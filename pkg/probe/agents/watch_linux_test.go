package agents

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/functions"
	"github.com/cniscope/cniscope/test/harness"
)

// Reading a program's tables costs more than looks.
func TestAnAgentWithoutNamesIsOpenedOnceForAWait(t *testing.T) {
	server := serverProcess(t)
	a := New(nil, 1, &kernelSide{followed: map[event.Process]int{server.Process: 1}}, new(atomic.Uint64))
	a.Note(event.Event{Body: &event.Connect{Process: "plugin", Socket: "s"}})
	a.Note(event.Event{Body: &event.Accept{Socket: "s", Agent: server}})
	known := a.known[server.Process]
	a.Functions = functions.NewStacks()
	a.Functions.Spent(0)
	a.Tend(int64(900 * time.Millisecond))
	harness.Equal(t, known.watch == nil, true, "without time to look")
	a.Functions = functions.NewStacks()
	a.Tend(int64(time.Second))
	opened := known.watch
	a.Tend(int64(2 * time.Second))
	if opened == nil || opened.Watch != nil || known.watch != opened {
		t.Errorf("first %+v, then %+v", opened, known.watch)
	}
	a.open["s"].look = 1 // of another agent, which it called before
	a.Note(event.Event{Time: int64(2 * time.Second), Body: &event.Close{Process: "plugin", Socket: "s"}})
	a.Tend(int64(3 * time.Second))
	harness.Equal(t, known.watch == nil, true, "after the wait")
}
