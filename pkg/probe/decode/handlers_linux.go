package decode

import (
	"fmt"
	"unsafe"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/evidence"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
)

// newHandlers has each file register those of the classes that it reads.
func newHandlers() (all handlers) {
	for _, register := range []func(on){locks, sockets, files, netlinked} {
		register(func(h handler, classes ...kernel.InsideClass) {
			for _, class := range classes {
				all[class] = h
			}
		})
	}
	return all
}

// call returns the events in one record of the inside of a process; none is no error.
func (d *Decoder) call(raw []byte) ([]event.Event, error) {
	var w kernel.InsideCallEvent
	if err := wire(&w, raw, unsafe.Offsetof(w.Data)); err != nil {
		return nil, fmt.Errorf("call: %w", err)
	}
	if int(w.Len) > len(w.Data) {
		return nil, fmt.Errorf("call: %d bytes of data in a record with room for %d", w.Len, len(w.Data))
	}
	r := record{InsideCallEvent: &w, process: kernel.ProcessOf(w.H.Task), data: w.Data[:w.Len]}
	d.space(namespace(w.NetnsCookie, w.NetnsInum))
	bodies := d.bodies(r)
	events := make([]event.Event, 0, len(bodies)+1)
	for _, b := range bodies {
		d.attribute(r.process, b)
		d.redact(r.process, b)
		events = append(events, event.Event{Time: int64(w.H.Time), Body: b})
	}
	return events, nil
}

// bodies says what a record means.
func (d *Decoder) bodies(r record) []event.Body {
	if int(r.Class) < len(d.handlers) && d.handlers[r.Class] != nil {
		if bodies, is := d.handlers[r.Class](d, r); is {
			return bodies
		}
	}
	if told := textCalls[d.names[r.Nr]]; told != nil {
		return []event.Body{told(d, r, textsOf(r.data))}
	}
	return one(d.wait(r))
}

// attribute fills in for which sandbox a process does something, if it says so.
func (d *Decoder) attribute(process event.Process, body event.Body) {
	switch p := d.tree.Get(process); {
	case p == nil:
	case p.Run == nil:
		d.sandboxes.Attribute(evidence.Doer{Agent: true}, body)
	default:
		d.sandboxes.Attribute(evidence.Doer{Container: p.Run.Call.ContainerID, Hearsay: !p.Run.Vouched()}, body)
	}
}
