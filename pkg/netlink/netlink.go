// Package netlink reads what processes ask of the kernel's network configuration from the
// bytes of their system calls: messages of rtnetlink, nf_tables, ipset and conntrack, ioctls,
// tables of iptables. It is pure, and builds everywhere.
//
// The bytes are a process's own word, and may be cut: what cannot be understood of them is
// left out, and is no error.
package netlink

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"

	"github.com/mdlayher/netlink"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/text"
)

// Call is the system call that the bytes went through, and what of the process it takes to understand them.
type Call struct {
	Process event.Process
	Thread  uint32
	Start   int64
	// NetNS is the socket's network namespace.
	NetNS event.Namespace
	// Family and Port are those of a netlink socket.
	Family uint16
	Port   uint32
	// Errno names the error that a negative number stands for; it returns nothing for others.
	Errno func(int64) string
	// ByFile and ByPID return the network namespace behind a descriptor of the process, or
	// that of the process with that number; empty if it is not known.
	ByFile, ByPID func(uint32) event.Namespace
}

// Requests returns what the messages in data ask for. Messages of one name that follow one
// another are one request, since a change of the firewall may have hundreds; but not changes
// of rtnetlink, each of which has its own object.
func (c *Call) Requests(data []byte) (requests []*event.Request) {
	var last *event.Request
	for _, m := range messages(data) {
		q := c.message(m)
		switch {
		case q == nil:
		case last != nil && last.Protocol == q.Protocol && last.Name == q.Name && last.Verb == q.Verb && (q.Query() || c.Family != netlinkRoute):
			last.Count = max(last.Count, 1) + 1
		default:
			last = q
			requests = append(requests, q)
		}
	}
	return requests
}

// Answers returns what the kernel said in data, in its order: refusals (*event.Answer), the
// names of interfaces (*event.Link), and IPv6 addresses with their state (*event.Address).
func (c *Call) Answers(data []byte) (bodies []event.Body) {
	for _, m := range messages(data) {
		switch {
		case m.Header.Type == netlink.Error:
			if a := c.refusal(m); a != nil {
				bodies = append(bodies, a)
			}
		case m.Header.Type == rtmNewAddr && c.Family == netlinkRoute:
			if a := c.addressState(m.Data); a != nil {
				bodies = append(bodies, a)
			}
		case m.Header.Type == rtmNewLink && c.Family == netlinkRoute:
			if l := c.linkName(m.Data); l != nil {
				bodies = append(bodies, l)
			}
		}
	}
	return bodies
}

// request begins one of this call.
func (c *Call) request() *event.Request {
	return &event.Request{Process: c.Process, Thread: c.Thread, Start: c.Start, NetNS: c.NetNS}
}

// message is one message; nil for those that only hold others together.
func (c *Call) message(m netlink.Message) *event.Request {
	q := c.request()
	q.Name = fmt.Sprintf("message %d", m.Header.Type)
	q.Port, q.Sequence = c.Port, m.Header.Sequence
	if m.Header.Type < nlmsgMinType {
		return nil // NLMSG_NOOP and the like
	}
	if m.Header.Flags&netlink.Dump == netlink.Dump {
		q.Verb = event.VerbQuery // whatever it is, it asks for a list
	}
	switch c.Family {
	case netlinkRoute:
		q.Protocol = "rtnetlink"
		c.rtnetlink(q, m)
	case netlinkNetfilter:
		if m.Header.Type == nfnlMsgBatchBegin || m.Header.Type == nfnlMsgBatchEnd {
			return nil
		}
		netfilter(q, m)
	case netlinkGeneric:
		q.Protocol = "generic netlink"
		if m.Header.Type == genlIDCtrl && len(m.Data) > 0 && m.Data[0] == ctrlCmdGetFamily {
			q.Name, q.Verb = "CTRL_CMD_GETFAMILY", event.VerbQuery
		}
	case netlinkSockDiag:
		q.Protocol = "sock_diag"
	case netlinkXfrm:
		q.Protocol = "xfrm"
	case netlinkAudit:
		q.Protocol = "audit"
	default:
		q.Protocol = fmt.Sprintf("netlink %d", c.Family)
	}
	return q
}

// refusal reads a struct nlmsgerr and what may follow it (netlink(7)): the request, or its
// header alone, then attributes. It is nil where the request was granted.
func (c *Call) refusal(m netlink.Message) *event.Answer {
	const head = 4 + headerSize
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
		asked := binary.NativeEndian.Uint32(m.Data[4:]) // how long the request is
		rest = rest[min(uint64(len(rest)), align(uint64(max(asked, headerSize)-headerSize))):]
	}
	if m.Header.Flags&netlink.AcknowledgeTLVs != 0 {
		attributes(rest, func(ad *netlink.AttributeDecoder) {
			if ad.Type() == nlmsgerrAttrMsg {
				a.Message = foreign(ad.Bytes(), text.Bound)
			}
		})
	}
	return a
}

// messages returns those that b holds. The last one may lack its end.
func messages(b []byte) (all []netlink.Message) {
	for len(b) >= headerSize {
		length := uint64(binary.NativeEndian.Uint32(b))
		whole := min(align(length), uint64(len(b))&^(alignTo-1))
		if length < headerSize {
			return all
		}
		all = append(all, netlink.Message{
			Header: netlink.Header{
				Length:   uint32(length),
				Type:     netlink.HeaderType(binary.NativeEndian.Uint16(b[4:])),
				Flags:    netlink.HeaderFlags(binary.NativeEndian.Uint16(b[6:])),
				Sequence: binary.NativeEndian.Uint32(b[8:]),
				PID:      binary.NativeEndian.Uint32(b[12:]),
			},
			Data: b[headerSize:min(length, whole)],
		})
		b = b[whole:]
	}
	return all
}

func align(n uint64) uint64 { return (n + alignTo - 1) &^ (alignTo - 1) }

// attributes calls f for each attribute of b, until one lacks its end.
func attributes(b []byte, f func(*netlink.AttributeDecoder)) {
	ad, err := netlink.NewAttributeDecoder(b)
	if err != nil { // fewer bytes behind the last one than a header has
		ad, err = netlink.NewAttributeDecoder(b[:len(b)&^(alignTo-1)])
	}
	for err == nil && ad.Next() {
		f(ad)
	}
}

// fixed reads the struct that a message begins with, and returns the attributes behind it;
// false if not all of it is there.
func fixed[T any](b []byte, to *T) ([]byte, bool) {
	n, err := binary.Decode(b, binary.NativeEndian, to)
	if err != nil {
		return nil, false
	}
	return b[min(uint64(len(b)), align(uint64(n))):], true
}

// foreign is a name in somebody's message, up to its zero.
func foreign(b []byte, limit int) string {
	name, _, _ := bytes.Cut(b, []byte{0})
	return text.Clean(string(name), limit)
}

// ipOf is an address of either family; empty for what has another length.
func ipOf(b []byte) string {
	a, ok := netip.AddrFromSlice(b)
	if !ok {
		return ""
	}
	return a.String()
}

// prefix is an address with how many bits of it are the network's.
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

// mac is a link-layer address; InfiniBand's has 20 bytes.
func mac(b []byte) string {
	if len(b) > 20 {
		return ""
	}
	return net.HardwareAddr(b).String()
}
