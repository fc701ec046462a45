package decode

import (
	"golang.org/x/sys/unix"

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
	switch r.Protocol {
	case unix.AF_UNIX:
		x.Network, x.Address = "unix", unixAddress(r.data)
	case unix.AF_INET, unix.AF_INET6:
		x.Network = "tcp"
		if address, ok := inetAddress(r.data); ok {
			x.Address = address.String()
		}
	}
	// With socket activation PID 1 only listens.
	if r.Other.Start != 0 && r.Other.Pid != 1 {
		x.Peer = r.other()
	}
	return one(x), true
}
