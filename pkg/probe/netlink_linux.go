package probe

import (
	"encoding/binary"
	"fmt"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/text"
)

// netlink returns what was asked of the kernel, or how it answered. What a message says
// is the process's own word: what cannot be understood of it is left out, and is no error.
func (in *interior) netlink(r record) []event.Body {
	switch insideClass(r.Class) {
	case insideClassCLASS_SENDTO, insideClassCLASS_SENDMSG:
		return in.requests(r)
	default:
		return in.answers(r)
	}
}

// requests are the messages of one system call. Those of one name behind one another are
// one request, since a change of the firewall may have hundreds; but not the changes of
// interfaces, each of which has its own object.
func (in *interior) requests(r record) (bodies []event.Body) {
	var last *event.Request
	for _, m := range messages(r.data) {
		q := in.request(r, m)
		if q == nil {
			continue
		}
		in.touch(q)
		switch {
		case last != nil && last.Protocol == q.Protocol && last.Name == q.Name && last.Verb == q.Verb && (q.Query() || r.Protocol != unix.NETLINK_ROUTE):
			last.Count = max(last.Count, 1) + 1
		default:
			last = q
			bodies = append(bodies, q)
		}
	}
	if rest := r.Ret - int64(len(r.data)); r.Cut != 0 && rest > 0 {
		bodies = append(bodies, &event.Cut{Process: r.process, What: "bytes", Count: uint64(rest)})
	}
	return bodies
}

// request is one message; nil for those that only hold others together.
func (in *interior) request(r record, m netlink.Message) *event.Request {
	q := &event.Request{
		Process: r.process, Thread: r.Thread, Start: int64(r.Start),
		Name: fmt.Sprintf("message %d", m.Header.Type),
		Port: r.Port, Sequence: m.Header.Sequence, NetNS: namespace(r.NetnsCookie, r.NetnsInum),
	}
	if m.Header.Type < unix.NLMSG_MIN_TYPE {
		return nil // NLMSG_NOOP and the like
	}
	switch r.Protocol {
	case unix.NETLINK_ROUTE:
		q.Protocol = "rtnetlink"
		in.rtnetlink(q, r, m)
	case unix.NETLINK_NETFILTER:
		if m.Header.Type == unix.NFNL_MSG_BATCH_BEGIN || m.Header.Type == unix.NFNL_MSG_BATCH_END {
			return nil
		}
		netfilter(q, m)
	case unix.NETLINK_GENERIC:
		q.Protocol = "generic netlink"
		q.Verb = dump(m)
		if m.Header.Type == unix.GENL_ID_CTRL && len(m.Data) > 0 && m.Data[0] == unix.CTRL_CMD_GETFAMILY {
			q.Name, q.Verb = "CTRL_CMD_GETFAMILY", event.VerbQuery
		}
	default:
		q.Protocol = protocol(r.Protocol)
		q.Verb = dump(m)
	}
	return q
}

// dump returns the verb of a message that nothing is known of but its header: one that asks
// for a list changes nothing.
func dump(m netlink.Message) event.Verb {
	if m.Header.Flags&netlink.Dump == netlink.Dump {
		return event.VerbQuery
	}
	return ""
}

// protocol names the families of netlink that nothing more is known of.
func protocol(n uint16) string {
	switch n {
	case unix.NETLINK_SOCK_DIAG:
		return "sock_diag"
	case unix.NETLINK_XFRM:
		return "xfrm"
	case unix.NETLINK_AUDIT:
		return "audit"
	}
	return fmt.Sprintf("netlink %d", n)
}

// answers are the refusals in what the kernel said, and the addresses that changed.
func (in *interior) answers(r record) (bodies []event.Body) {
	for _, m := range messages(r.data) {
		switch {
		case m.Header.Type == netlink.Error:
			bodies = append(bodies, one(answer(r, m))...)
		case m.Header.Type == unix.RTM_NEWADDR && r.Protocol == unix.NETLINK_ROUTE:
			bodies = append(bodies, one(in.told(r, m))...)
		case m.Header.Type == unix.RTM_NEWLINK && r.Protocol == unix.NETLINK_ROUTE:
			bodies = append(bodies, one(in.called(r, m))...)
		}
	}
	return bodies
}

// called is what a process learns of an interface's name, if that is new.
func (in *interior) called(r record, m netlink.Message) *event.Link {
	var info unix.IfInfomsg
	rest, ok := fixed(m.Data, &info)
	p := in.processes[r.process]
	if !ok || p == nil || info.Index <= 0 {
		return nil
	}
	l := &event.Link{Process: r.process, NetNS: namespace(r.NetnsCookie, r.NetnsInum), Index: uint32(info.Index)}
	attributes(rest, func(ad *netlink.AttributeDecoder) {
		if ad.Type() == unix.IFLA_IFNAME {
			l.Name = foreign(ad.Bytes(), unix.IFNAMSIZ)
		}
	})
	key := fmt.Sprint(l.NetNS.Key, " ", l.Index)
	if l.Name == "" || p.links[key] == l.Name {
		return nil
	}
	if p.links == nil || len(p.links) >= maxLinks {
		p.links = map[string]string{}
	}
	p.links[key] = l.Name
	return l
}

// answer reads a struct nlmsgerr and what may follow it (netlink(7)): the request, or its
// header alone, then attributes. It is nil where the request was granted.
func answer(r record, m netlink.Message) *event.Answer {
	const head = 4 + unix.SizeofNlMsghdr
	if len(m.Data) < head {
		return nil
	}
	code := int32(binary.NativeEndian.Uint32(m.Data))
	a := &event.Answer{
		Process: r.process, Port: r.Port, Sequence: m.Header.Sequence, Error: errno(int64(code)),
	}
	if a.Error == "" {
		return nil
	}
	rest := m.Data[head:]
	if m.Header.Flags&netlink.Capped == 0 {
		asked := binary.NativeEndian.Uint32(m.Data[4:]) // how long the request is
		rest = rest[min(uint64(len(rest)), align(uint64(max(asked, unix.SizeofNlMsghdr)-unix.SizeofNlMsghdr))):]
	}
	if m.Header.Flags&netlink.AcknowledgeTLVs != 0 {
		attributes(rest, func(ad *netlink.AttributeDecoder) {
			if ad.Type() == unix.NLMSGERR_ATTR_MSG {
				a.Message = foreign(ad.Bytes(), text.Bound)
			}
		})
	}
	return a
}

// messages returns those that b holds. The last one may lack its end.
func messages(b []byte) (all []netlink.Message) {
	for len(b) >= unix.SizeofNlMsghdr {
		length := uint64(binary.NativeEndian.Uint32(b))
		whole := min(align(length), uint64(len(b))&^(unix.NLMSG_ALIGNTO-1))
		binary.NativeEndian.PutUint32(b, uint32(min(length, whole)))
		var m netlink.Message
		if m.UnmarshalBinary(b[:whole]) != nil {
			return all
		}
		all = append(all, m)
		b = b[whole:]
	}
	return all
}

func align(n uint64) uint64 {
	return (n + unix.NLMSG_ALIGNTO - 1) &^ (unix.NLMSG_ALIGNTO - 1)
}

// attributes calls f for each attribute of b, until one lacks its end.
func attributes(b []byte, f func(*netlink.AttributeDecoder)) {
	ad, err := netlink.NewAttributeDecoder(b)
	if err != nil { // fewer bytes behind the last one than a header has
		ad, err = netlink.NewAttributeDecoder(b[:len(b)&^(unix.NLA_ALIGNTO-1)])
	}
	for err == nil && ad.Next() {
		f(ad)
	}
}

// fixed reads the struct that a message begins with, and returns the attributes behind
// it; false if not all of it is there.
func fixed[T any](b []byte, to *T) ([]byte, bool) {
	n, err := binary.Decode(b, binary.NativeEndian, to)
	if err != nil {
		return nil, false
	}
	return b[min(uint64(len(b)), align(uint64(n))):], true
}

// foreign is a name in somebody's message.
func foreign(b []byte, limit int) string { return text.Clean(unix.ByteSliceToString(b), limit) }
