package timeline

import (
	"slices"
	"strings"

	"github.com/cniscope/cniscope/pkg/event"
)

// Detection is duplicate address detection, as far as a process looked how it went on.
type Detection struct {
	NetNS   event.Namespace
	Index   uint32
	Address string
	// On is the interface's name; empty if it is not known.
	On string
	// Interval is from when the address was asked for, or first seen tentative, until the
	// process was told what came of it.
	Interval
	// State is what came of it; AddressTentative if the process did not wait for that.
	State event.AddressState
}

// open tells whether nothing has come of it yet.
func (d *Detection) open() bool { return d.State == event.AddressTentative }

func (t *Timeline) address(now int64, a *event.Address) {
	p := t.of(a.Process)
	if p == nil {
		return
	}
	im := p.current()
	var d *Detection
	if im.Inside != nil {
		i := slices.IndexFunc(im.Inside.Detections, func(d *Detection) bool {
			return d.open() && d.NetNS.Key == a.NetNS.Key && d.Index == a.Index && bare(d.Address) == bare(a.Address)
		})
		if i >= 0 {
			d = im.Inside.Detections[i]
		}
	}
	if d == nil {
		if a.State != event.AddressTentative || !t.room(p, "addresses") {
			return // it did not have to wait
		}
		d = &Detection{NetNS: a.NetNS, Index: a.Index, Address: a.Address, State: a.State}
		d.Interval = im.within(im.asked(a, now), now)
		in := im.inside()
		in.Detections = append(in.Detections, d)
	}
	d.State, d.End = a.State, max(d.Start, now)
}

// asked is when the image gave an interface this address; now if it did not.
func (im *Image) asked(a *event.Address, now int64) int64 {
	if im.Inside == nil {
		return now
	}
	for i := range slices.Backward(im.Inside.Requests) {
		r := &im.Inside.Requests[i]
		if r.Object == event.ObjectAddress && (r.Verb == event.VerbAdd || r.Verb == event.VerbChange) && bare(r.Address) == bare(a.Address) && r.NetNS.Key == a.NetNS.Key &&
			(r.Interface.Index == a.Index || r.Interface.Index == 0) {
			return r.When.Start
		}
	}
	return now
}

// bare is an address without its prefix length.
func bare(address string) string {
	s, _, _ := strings.Cut(address, "/")
	return s
}
