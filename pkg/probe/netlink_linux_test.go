package probe

import (
	"encoding/binary"
	"net/netip"
	"reflect"
	"testing"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/symbols"
)

// sent and received are records of a netlink socket, of process 7@0.
func sent(protocol uint16, data ...[]byte) record {
	return over(insideClassCLASS_SENDTO, protocol, data)
}

func received(protocol uint16, data ...[]byte) record {
	return over(insideClassCLASS_RECVMSG, protocol, data)
}

func over(class insideClass, protocol uint16, data [][]byte) record {
	w := &insideCallEvent{Class: uint8(class), Protocol: protocol, Port: 77, NetnsInum: 5, NetnsCookie: 50, Start: 100}
	w.H.Kind, w.H.Task.Tgid = uint8(bpfKindKIND_CALL), 7
	r := record{insideCallEvent: w, process: "7@0"}
	for _, d := range data {
		r.data = append(r.data, d...)
	}
	w.Ret, w.Len = int64(len(r.data)), uint32(len(r.data))
	copy(w.Data[:], r.data)
	return r
}

// resident is an interior that knows the process of these records, which are from a pod.
func resident() *interior {
	in := newInterior(true, new(symbols.Table))
	in.add("7@0", "").home = "1"
	return in
}

// message builds one: a fixed header, then attributes.
func message(kind netlink.HeaderType, flags netlink.HeaderFlags, head any, fill func(*netlink.AttributeEncoder)) []byte {
	data, err := binary.Append(nil, binary.NativeEndian, head)
	if err != nil {
		panic(err)
	}
	if fill != nil {
		data = append(data, attrs(fill)...)
	}
	b, err := (&netlink.Message{
		Header: netlink.Header{Length: uint32(align(uint64(16 + len(data)))), Type: kind, Flags: flags, Sequence: 3}, Data: data,
	}).MarshalBinary()
	if err != nil {
		panic(err)
	}
	return b
}

func attrs(fill func(*netlink.AttributeEncoder)) []byte {
	ae := netlink.NewAttributeEncoder()
	fill(ae)
	b, err := ae.Encode()
	if err != nil {
		panic(err)
	}
	return b
}

// bare is a request without what all those of these tests have in common.
func bare(b event.Body) event.Request {
	q := *b.(*event.Request)
	q.Process, q.Start, q.Port, q.Sequence, q.NetNS = "", 0, 0, 0, event.Namespace{}
	return q
}

func TestOneMessageIsOneRequest(t *testing.T) {
	nf := unix.Nfgenmsg{Nfgen_family: unix.AF_INET}
	for name, test := range map[string]struct {
		record record
		want   event.Request
	}{
		"a route of several ways has the first": {
			sent(unix.NETLINK_ROUTE, message(unix.RTM_NEWROUTE, netlink.Request|netlink.Replace, unix.RtMsg{Family: unix.AF_INET, Dst_len: 8, Table: unix.RT_TABLE_MAIN}, func(ae *netlink.AttributeEncoder) {
				ae.Bytes(unix.RTA_DST, []byte{10, 0, 0, 0})
				hop, _ := binary.Append(nil, binary.NativeEndian, unix.RtNexthop{Len: 16, Ifindex: 4})
				ae.Bytes(unix.RTA_MULTIPATH, append(hop, attrs(func(ae *netlink.AttributeEncoder) { ae.Bytes(unix.RTA_GATEWAY, []byte{10, 1, 0, 1}) })...))
			})),
			event.Request{Protocol: "rtnetlink", Name: "RTM_NEWROUTE", Object: event.ObjectRoute, Verb: event.VerbChange, Route: "10.0.0.0/8", Gateway: "10.1.0.1", Interface: event.Interface{Index: 4}},
		},
		"a route by way of the other family": {
			sent(unix.NETLINK_ROUTE, message(unix.RTM_NEWROUTE, netlink.Request|netlink.Excl, unix.RtMsg{Family: unix.AF_INET}, func(ae *netlink.AttributeEncoder) {
				ae.Bytes(unix.RTA_VIA, append([]byte{unix.AF_INET6, 0}, netip.MustParseAddr("fe80::1").AsSlice()...))
				ae.Uint32(unix.RTA_OIF, 2)
				ae.Uint32(unix.RTA_TABLE, 1000)
			})),
			event.Request{Protocol: "rtnetlink", Name: "RTM_NEWROUTE", Object: event.ObjectRoute, Verb: event.VerbAdd, Exclusive: true, Route: "default", Gateway: "fe80::1", Table: "1000", Interface: event.Interface{Index: 2}},
		},
		"an address of a link between two is the near one": {
			sent(unix.NETLINK_ROUTE, message(unix.RTM_NEWADDR, netlink.Request, unix.IfAddrmsg{Family: unix.AF_INET, Prefixlen: 32, Index: 3}, func(ae *netlink.AttributeEncoder) {
				ae.Bytes(unix.IFA_ADDRESS, []byte{10, 0, 0, 2})
				ae.Bytes(unix.IFA_LOCAL, []byte{10, 0, 0, 1})
			})),
			event.Request{Protocol: "rtnetlink", Name: "RTM_NEWADDR", Object: event.ObjectAddress, Verb: event.VerbChange, Address: "10.0.0.1/32", Interface: event.Interface{Index: 3}},
		},
		"a name is made harmless": {
			sent(unix.NETLINK_ROUTE, message(unix.RTM_NEWLINK, netlink.Request, unix.IfInfomsg{}, func(ae *netlink.AttributeEncoder) {
				ae.String(unix.IFLA_IFNAME, "\x1b[2Jx")
			})),
			event.Request{Protocol: "rtnetlink", Name: "RTM_NEWLINK", Object: event.ObjectLink, Verb: event.VerbChange, Interface: event.Interface{Name: `\x1b[2Jx`}},
		},
		"what a message lacks at its end is no error": {
			sent(unix.NETLINK_ROUTE, message(unix.RTM_NEWLINK, netlink.Request, unix.IfInfomsg{Index: 2}, func(ae *netlink.AttributeEncoder) {
				ae.Uint32(unix.IFLA_MTU, 1400)
				ae.String(unix.IFLA_IFNAME, "eth0")
			})[:46]),
			event.Request{Protocol: "rtnetlink", Name: "RTM_NEWLINK", Object: event.ObjectLink, Verb: event.VerbChange, Interface: event.Interface{Index: 2, MTU: 1400}},
		},
		"a question has a name alone": {
			sent(unix.NETLINK_ROUTE, message(unix.RTM_GETADDR, netlink.Request|netlink.Dump, [1]byte{unix.AF_INET6}, nil)),
			event.Request{Protocol: "rtnetlink", Name: "RTM_GETADDR", Object: event.ObjectAddress, Verb: event.VerbQuery},
		},
		"deleting many at once is not exclusive, though it is the same bit": {
			sent(unix.NETLINK_NETFILTER, message(unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_DELTABLE, netlink.Request|0x200, nf, nil)),
			event.Request{Protocol: "nf_tables", Name: "NFT_MSG_DELTABLE", Object: event.ObjectTable, Verb: event.VerbDelete},
		},
		"an ipset": {
			sent(unix.NETLINK_NETFILTER, message(unix.NFNL_SUBSYS_IPSET<<8|9, netlink.Request|netlink.Excl, nf, func(ae *netlink.AttributeEncoder) { ae.String(2, "pods") })),
			event.Request{Protocol: "ipset", Name: "IPSET_CMD_ADD", Object: event.ObjectElement, Verb: event.VerbAdd, Exclusive: true, Table: "pods"},
		},
		"connections that are forgotten": {
			sent(unix.NETLINK_NETFILTER, message(unix.NFNL_SUBSYS_CTNETLINK<<8|2, netlink.Request, nf, nil)),
			event.Request{Protocol: "conntrack", Name: "IPCTNL_MSG_CT_DELETE", Object: event.ObjectConnection, Verb: event.VerbDelete},
		},
		"what the packet filter has since": {
			sent(unix.NETLINK_NETFILTER, message(200<<8|3, netlink.Request, nf, nil)),
			event.Request{Protocol: "nfnetlink 200", Name: "message 51203"},
		},
		"the number of a generic family is asked for": {
			sent(unix.NETLINK_GENERIC, message(unix.GENL_ID_CTRL, netlink.Request, [4]byte{unix.CTRL_CMD_GETFAMILY, 1}, nil)),
			event.Request{Protocol: "generic netlink", Name: "CTRL_CMD_GETFAMILY", Verb: event.VerbQuery},
		},
		"a generic family has any number": {
			sent(unix.NETLINK_GENERIC, message(31, netlink.Request, [4]byte{1, 1}, nil)),
			event.Request{Protocol: "generic netlink", Name: "message 31"},
		},
		"another family": {
			sent(unix.NETLINK_XFRM, message(16, netlink.Request, [4]byte{}, nil)),
			event.Request{Protocol: "xfrm", Name: "message 16"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := resident().netlink(test.record)
			if len(got) != 1 || !reflect.DeepEqual(bare(got[0]), test.want) {
				t.Fatalf("%d events, %+v\nwant %+v", len(got), got[0], test.want)
			}
		})
	}
}

func TestMessagesOfOneCall(t *testing.T) {
	nft := func(kind netlink.HeaderType) []byte {
		return message(unix.NFNL_SUBSYS_NFTABLES<<8|kind, netlink.Request, unix.Nfgenmsg{}, func(ae *netlink.AttributeEncoder) { ae.String(1, "cni") })
	}
	begin, end := message(unix.NFNL_MSG_BATCH_BEGIN, netlink.Request, unix.Nfgenmsg{}, nil), message(unix.NFNL_MSG_BATCH_END, netlink.Request, unix.Nfgenmsg{}, nil)
	got := resident().netlink(sent(unix.NETLINK_NETFILTER, begin, nft(unix.NFT_MSG_NEWTABLE), nft(unix.NFT_MSG_NEWRULE), nft(unix.NFT_MSG_NEWRULE), nft(unix.NFT_MSG_NEWSET), end))
	if len(got) != 3 || bare(got[0]).Count != 0 || bare(got[1]).Count != 2 || bare(got[2]).Name != "NFT_MSG_NEWSET" {
		t.Errorf("a batch: %+v", got)
	}
	up := message(unix.RTM_NEWLINK, netlink.Request, unix.IfInfomsg{Index: 2, Flags: unix.IFF_UP, Change: unix.IFF_UP}, nil)
	if got := resident().netlink(sent(unix.NETLINK_ROUTE, up, up)); len(got) != 2 || bare(got[0]).Interface.State != "up" {
		t.Errorf("two interfaces are changed: %+v", got)
	}
	r := sent(unix.NETLINK_ROUTE, up)
	r.Ret, r.Cut = 5000, 1
	if got := resident().netlink(r); len(got) != 2 || got[1].(*event.Cut).Count != 5000-32 {
		t.Errorf("what is too long to be read whole says so: %+v", got)
	}
}

func TestRefusals(t *testing.T) {
	asked := message(unix.RTM_NEWADDR, netlink.Request, unix.IfAddrmsg{}, nil)
	words := attrs(func(ae *netlink.AttributeEncoder) {
		ae.String(unix.NLMSGERR_ATTR_MSG, "Nexthop has \x1binvalid gateway.")
	})
	said := func(flags netlink.HeaderFlags, errno int32, rest ...byte) []byte {
		return message(netlink.Error, flags, append(binary.NativeEndian.AppendUint32(nil, uint32(errno)), rest...), nil)
	}
	for name, test := range map[string]struct {
		answer []byte
		want   *event.Answer
	}{
		"granted":              {said(netlink.Capped, 0, asked[:16]...), nil},
		"the request repeated": {said(0, -17, asked...), &event.Answer{Error: "EEXIST"}},
		"… and words behind it": {
			said(netlink.AcknowledgeTLVs, -101, append(asked, words...)...),
			&event.Answer{Error: "ENETUNREACH", Message: `Nexthop has \x1binvalid gateway.`},
		},
		"its header alone, and words": {
			said(netlink.AcknowledgeTLVs|netlink.Capped, -101, append(asked[:16:16], words...)...),
			&event.Answer{Error: "ENETUNREACH", Message: `Nexthop has \x1binvalid gateway.`},
		},
		"an end that is missing":    {said(netlink.AcknowledgeTLVs, -17, asked[:16]...), &event.Answer{Error: "EEXIST"}},
		"nothing that can be meant": {said(0, -17), nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := resident().netlink(received(unix.NETLINK_ROUTE, test.answer))
			if test.want == nil && len(got) == 0 {
				return
			}
			if test.want == nil || len(got) != 1 {
				t.Fatalf("%+v, want %+v", got, test.want)
			}
			test.want.Process, test.want.Port, test.want.Sequence = "7@0", 77, 3
			if *got[0].(*event.Answer) != *test.want {
				t.Errorf("%+v, want %+v", got[0], test.want)
			}
		})
	}
}
