package decode

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
)

func TestNoClassOfRecordsVanishes(t *testing.T) {
	lasting := map[kernel.InsideClass]bool{
		kernel.InsideClassCLASS_OTHER: true, kernel.InsideClassCLASS_WORK: true, kernel.InsideClassCLASS_NEVER: true, kernel.InsideClassCLASS_SLEEP: true,
		kernel.InsideClassCLASS_FUTEX: true, kernel.InsideClassCLASS_POLL: true, kernel.InsideClassCLASS_WAIT: true,
	}
	d := newDecoder()
	for class := range kernel.InsideClassCLASSES {
		if (handlers[class] == nil) != lasting[class] {
			t.Errorf("class %d: a handler: %v", class, handlers[class] != nil)
		}
	}
	for class := range 256 { // unknown classes also are waits, and a connect of which only the wait was seen
		bodies := d.bodies(record{InsideCallEvent: &kernel.InsideCallEvent{Class: uint8(class)}})
		if wait, is := bodiesWait(bodies); (class >= int(kernel.InsideClassCLASSES) || class == int(kernel.InsideClassCLASS_CONNECT)) && (!is || wait.Kind != event.WaitCall) {
			t.Errorf("class %d: %+v", class, bodies)
		}
	}
}

func bodiesWait(bodies []event.Body) (*event.Wait, bool) {
	if len(bodies) != 1 {
		return nil, false
	}
	w, is := bodies[0].(*event.Wait)
	return w, is
}
