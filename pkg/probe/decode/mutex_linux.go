package decode

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
)

// mutex is a wait for a lock of the kernel, named by the first caller that is known.
func (d *Decoder) mutex(r record) *event.Wait {
	w := &event.Wait{Process: r.process, Thread: r.Thread, Start: int64(r.Start), Kind: event.WaitMutex}
	if r.Other.Tgid != 0 {
		w.Holder = &event.Actor{Process: kernel.ProcessOf(r.Other), PID: r.Other.Pid, Name: comm(r.Comm[:])}
	}
	var stack []uint64
	for b := r.data; len(b) >= 8; b = b[8:] {
		stack = append(stack, binary.NativeEndian.Uint64(b))
	}
	w.Name = d.options.Symbols.Lock(int64(r.H.Time), stack)
	if w.Name == "" { // names of functions are kept from us (kptr_restrict)
		w.Name = "kernel"
		if r.Port != 0 {
			w.Name = locksOf(r.Protocol)
		}
	}
	return w
}

// locksOf is the lock that a request over a netlink socket waits for, mostly.
func locksOf(protocol uint16) string {
	switch protocol {
	case unix.NETLINK_ROUTE:
		return "rtnl"
	case unix.NETLINK_NETFILTER:
		return "nft commit"
	}
	return "netlink"
}
