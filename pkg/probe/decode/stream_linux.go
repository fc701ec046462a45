package decode

import (
	"github.com/cniscope/cniscope/pkg/event"
)

func (d *Decoder) exchanged(r record) ([]event.Body, bool) {
	x := &event.Exchange{
		Process: r.process, Thread: r.Thread, Start: int64(r.Start), Socket: socketOf(r),
		Unasked: r.Args[0] != 0, Error: errno(r.Ret),
	}
	if last := int64(r.Args[2]); last > x.Start && !x.Unasked {
		x.Last = last
	}
	switch {
	case r.Args[1] != 0:
		x.Error = "closed"
	case r.Ret == 0:
		x.Error = "EOF"
	}
	x.Network, x.Address = r.remote()
	// With socket activation PID 1 only listens.
	if r.Other.Start != 0 && r.Other.Pid != 1 {
		x.Peer = r.other()
	}
	return one(x), true
}
