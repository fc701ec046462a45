package decode

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/text"
)

// socketOf names a connection by its first thread and time.
func socketOf(r record) string {
	return strconv.FormatUint(uint64(r.Port), 10) + "@" + strconv.FormatUint(r.Object, 10)
}

// nscd is ignored: every glibc program tries to connect to it, but few nodes run it.
const nscd = "/var/run/nscd/socket"

// refused is an asynchronous connect that failed. Over loopback its record precedes connect's.
func (d *Decoder) refused(r record) ([]event.Body, bool) {
	c := &event.Connect{
		Process: r.process, Thread: r.Port, Start: int64(r.Object), Socket: socketOf(r), Error: errno(r.Ret),
	}
	if p := d.processes[r.process]; p != nil {
		p.refused[r.Port%uint32(len(p.refused))] = c
	}
	return one(r, c), true
}

func (d *Decoder) accepted(r record) ([]event.Body, bool) {
	a := &event.Accept{Socket: socketOf(r), Agent: *r.other()}
	if r.H.Flags&uint8(kernel.LifeFlagFLAG_CONTEXT) != 0 {
		var c kernel.LifeThreadContext
		_, err := wire(&c, r.data, unsafe.Sizeof(c))
		if a.Thread = d.published(c, r.H.Flags); err != nil || a.Thread == nil {
			return nil, true
		}
	}
	return one(r, a), r.Other.Tgid != 0
}

func (*Decoder) closed(r record) ([]event.Body, bool) {
	return one(r, &event.Close{Process: r.process, Socket: socketOf(r)}), r.Object != 0
}

func (d *Decoder) connect(r record) ([]event.Body, bool) {
	if r.Object == 0 && r.Protocol == 0 { // it began before tracing
		return nil, false
	}
	c := &event.Connect{
		Process: r.process, Thread: r.Thread, Start: int64(r.Start), Socket: socketOf(r), Error: errno(r.Ret),
	}
	if c.Error == "EINPROGRESS" {
		c.Error = ""
		if p := d.processes[r.process]; p != nil {
			if before := p.refused[r.Port%uint32(len(p.refused))]; before != nil && before.Socket == c.Socket {
				c.Error = before.Error
			}
		}
	}
	if c.Network, c.Address = r.remote(); c.Address == "" || c.Address == nscd && c.Error != "" {
		return nil, true
	}
	if n := r.Other.Tgid; n != 0 {
		c.Listener = d.holder(n)
	}
	return one(r, c), true
}

func (r record) remote() (network, address string) {
	switch r.Protocol {
	case unix.AF_UNIX:
		return "unix", unixAddress(r.data)
	case unix.AF_INET, unix.AF_INET6:
		network = "tcp"
		if r.Out != 0 {
			network = "udp"
		}
		return network, inetAddress(r.data)
	}
	return "", ""
}

// unixAddress reads a struct sockaddr_un (unix(7)): a path, or a NUL and a name.
func unixAddress(b []byte) string {
	if len(b) < 3 {
		return ""
	}
	path := b[2:]
	if path[0] == 0 {
		return text.Clean("@"+unix.ByteSliceToString(path[1:]), 108)
	}
	return text.Clean(unix.ByteSliceToString(path), 108)
}

// inetAddress reads a struct sockaddr_in or sockaddr_in6 (ip(7), ipv6(7)).
func inetAddress(b []byte) string {
	if len(b) < 8 {
		return ""
	}
	port := binary.BigEndian.Uint16(b[2:])
	switch family := binary.NativeEndian.Uint16(b); {
	case family == unix.AF_INET:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), port).String()
	case family == unix.AF_INET6 && len(b) >= 24:
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(b[8:24])).Unmap(), port).String()
	}
	return ""
}

func (*Decoder) first4or6(r record) ([]event.Body, bool) {
	f := &event.FirstConnection{NetNS: namespace(r.NetnsCookie, r.NetnsInum)}
	var local, remote netip.Addr
	switch {
	case r.Protocol == unix.AF_INET:
		var a [8]byte
		binary.NativeEndian.PutUint32(a[:], uint32(r.Args[0]))
		binary.NativeEndian.PutUint32(a[4:], uint32(r.Args[1]))
		local, remote = netip.AddrFrom4([4]byte(a[:4])), netip.AddrFrom4([4]byte(a[4:]))
	case r.Protocol == unix.AF_INET6 && len(r.data) >= 32:
		local, remote = netip.AddrFrom16([16]byte(r.data[:16])).Unmap(), netip.AddrFrom16([16]byte(r.data[16:32])).Unmap()
	default:
		return one(r, f), true
	}
	f.Local, f.Remote = fmt.Sprint(netip.AddrPortFrom(local, uint16(r.Args[2]))), fmt.Sprint(netip.AddrPortFrom(remote, uint16(r.Args[3])))
	return one(r, f), true
}

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
	return one(r, x), true
}
