// Package netlink decodes requests to the kernel's network configuration from system calls. It is pure. The bytes are
// untrusted and may be cut, so undecodable parts are omitted.
package netlink

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"iter"
	"net"
	"net/netip"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/text"
)

// Call is the system call whose bytes are decoded.
type Call struct {
	Process event.Process
	Thread  uint32
	Start   int64
	NetNS   event.Namespace
	// Family and Port are those of a netlink socket.
	Family uint16
	Port   uint32
	// Errno names a negative result; empty for others.
	Errno func(int64) string
	// ByFile and ByPID return the network namespace of a descriptor or a process; empty if unknown.
	ByFile, ByPID func(uint32) event.Namespace
}

// Requests decodes data. Equal consecutive messages, hundreds for a firewall change, become one, except rtnetlink's
// changes, whose objects differ.
func (c *Call) Requests(data []byte) (requests []*event.Request) {
	var last *event.Request
	for m := range messages(data) {
		q := c.message(m)
		switch {
		case q == nil:
		case last != nil && last.Protocol == q.Protocol && last.Name == q.Name && last.Verb == q.Verb &&
			(q.Query() || c.Family != unix.NETLINK_ROUTE):
			last.Count = max(last.Count, 1) + 1
		default:
			last = q
			requests = append(requests, q)
		}
	}
	return requests
}

// Answers decodes *event.Answer, *event.Link, and *event.Address.
func (c *Call) Answers(data []byte) (bodies []event.Body) {
	for m := range messages(data) {
		switch {
		case m.Header.Type == netlink.Error:
			if a := c.refusal(m); a != nil {
				bodies = append(bodies, a)
			}
		case m.Header.Type == unix.RTM_NEWADDR && c.Family == unix.NETLINK_ROUTE:
			if a := c.addressState(m.Data); a != nil {
				bodies = append(bodies, a)
			}
		case m.Header.Type == unix.RTM_NEWLINK && c.Family == unix.NETLINK_ROUTE:
			if l := c.linkName(m.Data); l != nil {
				bodies = append(bodies, l)
			}
		}
	}
	return bodies
}

func (c *Call) request() *event.Request {
	return &event.Request{Process: c.Process, Thread: c.Thread, Start: c.Start, NetNS: c.NetNS}
}

func (c *Call) message(m netlink.Message) *event.Request {
	batch := c.Family == unix.NETLINK_NETFILTER && m.Header.Type <= unix.NFNL_MSG_BATCH_END
	if m.Header.Type < unix.NLMSG_MIN_TYPE || batch {
		return nil
	}
	q := c.request()
	q.Port, q.Sequence = c.Port, m.Header.Sequence
	if m.Header.Flags&netlink.Dump == netlink.Dump {
		q.Verb = event.VerbQuery
	}
	switch c.Family {
	case unix.NETLINK_ROUTE:
		q.Protocol = "rtnetlink"
		c.rtnetlink(q, m)
	case unix.NETLINK_NETFILTER:
		netfilter(q, m)
	case unix.NETLINK_GENERIC:
		q.Protocol = "generic netlink"
		if m.Header.Type == unix.GENL_ID_CTRL && len(m.Data) > 0 && m.Data[0] == unix.CTRL_CMD_GETFAMILY {
			q.Name, q.Verb = "CTRL_CMD_GETFAMILY", event.VerbQuery
		}
	default:
		if q.Protocol = otherProtocols[c.Family]; q.Protocol == "" {
			q.Protocol = fmt.Sprintf("netlink %d", c.Family)
		}
	}
	if q.Name == "" {
		q.Name = fmt.Sprintf("message %d", m.Header.Type)
	}
	return q
}

var otherProtocols = map[uint16]string{
	unix.NETLINK_SOCK_DIAG: "sock_diag", unix.NETLINK_XFRM: "xfrm", unix.NETLINK_AUDIT: "audit",
}

// refusal reads a struct nlmsgerr (netlink(7)); nil if the kernel granted the request.
func (c *Call) refusal(m netlink.Message) *event.Answer {
	const head = 4 + unix.NLMSG_HDRLEN
	if len(m.Data) < head {
		return nil
	}
	a := &event.Answer{Process: c.Process, Port: c.Port, Sequence: m.Header.Sequence}
	a.Error = c.Errno(int64(int32(binary.NativeEndian.Uint32(m.Data))))
	if a.Error == "" {
		return nil
	}
	rest := m.Data[head:]
	if m.Header.Flags&netlink.Capped == 0 {
		asked := binary.NativeEndian.Uint32(m.Data[4:])
		rest = rest[min(uint64(len(rest)), align(uint64(max(asked, unix.NLMSG_HDRLEN)-unix.NLMSG_HDRLEN))):]
	}
	if m.Header.Flags&netlink.AcknowledgeTLVs != 0 {
		a.Message = attributes(rest).text(unix.NLMSGERR_ATTR_MSG, text.Bound)
	}
	return a
}

// messages splits a buffer into messages, of which the last may be cut.
func messages(b []byte) iter.Seq[netlink.Message] {
	return func(yield func(netlink.Message) bool) {
		for len(b) >= unix.NLMSG_HDRLEN {
			length := uint64(binary.NativeEndian.Uint32(b))
			whole := min(align(length), uint64(len(b))&^(unix.NLMSG_ALIGNTO-1))
			if length < unix.NLMSG_HDRLEN || !yield(netlink.Message{
				Header: netlink.Header{
					Length:   uint32(length),
					Type:     netlink.HeaderType(binary.NativeEndian.Uint16(b[4:])),
					Flags:    netlink.HeaderFlags(binary.NativeEndian.Uint16(b[6:])),
					Sequence: binary.NativeEndian.Uint32(b[8:]),
					PID:      binary.NativeEndian.Uint32(b[12:]),
				},
				Data: b[unix.NLMSG_HDRLEN:min(length, whole)],
			}) {
				return
			}
			b = b[whole:]
		}
	}
}

func align(n uint64) uint64 { return (n + unix.NLMSG_ALIGNTO - 1) &^ (unix.NLMSG_ALIGNTO - 1) }

// attributes are a message's; the last may be cut.
type attributes []byte

// value returns the last attribute of a kind, as the kernel does, or nil.
func (a attributes) value(kind uint16) (value []byte) {
	for len(a) >= unix.NLA_HDRLEN {
		length := cmp.Or(int(binary.NativeEndian.Uint16(a)), unix.NLA_HDRLEN)
		if length < unix.NLA_HDRLEN || length > len(a) {
			return value
		}
		if binary.NativeEndian.Uint16(a[2:])&^(unix.NLA_F_NESTED|unix.NLA_F_NET_BYTEORDER) == kind {
			value = a[unix.NLA_HDRLEN:length]
		}
		a = a[min(uint64(len(a)), align(uint64(length))):]
	}
	return value
}

func (a attributes) text(kind uint16, limit int) string { return foreign(a.value(kind), limit) }

// number is 0 for another size.
func (a attributes) number(kind uint16) uint32 {
	if v := a.value(kind); len(v) == 4 {
		return binary.NativeEndian.Uint32(v)
	}
	return 0
}

// fixed reads a struct and returns the attributes behind it; false if the struct is cut.
func fixed[T any](b []byte, to *T) (attributes, bool) {
	n, err := binary.Decode(b, binary.NativeEndian, to)
	if err != nil {
		return nil, false
	}
	return b[min(uint64(len(b)), align(uint64(n))):], true
}

func foreign(b []byte, limit int) string {
	name, _, _ := bytes.Cut(b, []byte{0})
	return text.Clean(string(name), limit)
}

func ipOf(b []byte) string {
	a, ok := netip.AddrFromSlice(b)
	if !ok {
		return ""
	}
	return a.String()
}

func prefix(b []byte, bits uint8) string {
	a, ok := netip.AddrFromSlice(b)
	if !ok {
		return ""
	}
	if p := netip.PrefixFrom(a, int(bits)); p.IsValid() {
		return p.String()
	}
	return a.String()
}

// mac formats a hardware address of up to 20 bytes (InfiniBand); empty if it is longer.
func mac(b []byte) string {
	if len(b) > 20 {
		return ""
	}
	return net.HardwareAddr(b).String()
}
