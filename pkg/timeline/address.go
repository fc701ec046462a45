package timeline

import (
	"slices"
	"strings"

	"github.com/cniscope/cniscope/pkg/event"
)

// Detection is duplicate address detection, as far as a process looked how it went on: from
// when the address was asked for, or first seen tentative, until the process was told what
// came of it.
type Detection struct {
	NetNS   event.Namespace
	Index   uint32
	Address string
	// On is the interface's name; empty if it is not known.
	On string
	// State is what came of it; AddressTentative if the process did not wait for that.
	State event.AddressState
}

func (*Detection) kind() FactKind { return FactDetection }

// open tells whether nothing has come of it yet.
func (d *Detection) open() bool { return d.State == event.AddressTentative }

func (p *process) address(now int64, a *event.Address) {
	im := p.current()
	for f, d := range Each[*Detection](im.Facts) {
		if d.open() && d.NetNS.Key == a.NetNS.Key && d.Index == a.Index && bare(d.Address) == bare(a.Address) {
			d.State, f.When.End = a.State, max(f.When.Start, now)
			return
		}
	}
	if a.State == event.AddressTentative && p.room("addresses") { // else it did not have to wait
		p.keep(0, im.within(im.asked(a, now), now), &Detection{NetNS: a.NetNS, Index: a.Index, Address: a.Address, State: a.State})
	}
}

// asked is when the image gave an interface this address; now if it did not.
func (im *Image) asked(a *event.Address, now int64) int64 {
	for _, f := range slices.Backward(im.Facts) {
		r, is := f.What.(*Request)
		if is && r.Object == event.ObjectAddress && (r.Verb == event.VerbAdd || r.Verb == event.VerbChange) && bare(r.Address) == bare(a.Address) && r.NetNS.Key == a.NetNS.Key &&
			(r.Interface.Index == a.Index || r.Interface.Index == 0) {
			return f.When.Start
		}
	}
	return now
}

// bare is an address without its prefix length.
func bare(address string) string {
	s, _, _ := strings.Cut(address, "/")
	return s
}

// unanswered gives an end to the detections that a process did not see the end of.
func (op *operation) unanswered() {
	op.eachImage(func(im *Image) {
		for f, d := range Each[*Detection](im.Facts) {
			if d.open() {
				f.When.End = max(f.When.End, im.End)
			}
		}
	})
}
