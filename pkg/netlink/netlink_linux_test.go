package netlink

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/harness/netlinktest"
)

func socket(family uint16) *Call {
	in := func(kind string) func(uint32) event.Namespace {
		return func(uint32) event.Namespace { return event.Namespace{Label: kind} }
	}
	return &Call{
		Process: "7@0", Start: 100, NetNS: event.Namespace{Key: "50", Label: "5"}, Family: family, Port: 77,
		Errno: func(n int64) string { return unix.ErrnoName(unix.Errno(-n)) }, ByFile: in("a file's"), ByPID: in("a process's"),
	}
}

// common checks the fields that all requests of these tests share.
func common(t *testing.T, q *event.Request, port, sequence uint32) {
	t.Helper()
	if q.Process != "7@0" || q.Start != 100 || q.NetNS != (event.Namespace{Key: "50", Label: "5"}) || q.Port != port || q.Sequence != sequence {
		t.Errorf("%+v", q)
	}
}

func TestOneMessageIsOneRequest(t *testing.T) {
	type fill = func(*netlink.AttributeEncoder)
	message := func(kind, flags int, head any, f fill) []byte {
		return netlinktest.Message(netlink.HeaderType(kind), netlink.Request|netlink.HeaderFlags(flags), head, f)
	}
	route := func(flags netlink.HeaderFlags, m unix.RtMsg, f fill) []byte {
		m.Family = unix.AF_INET
		return message(unix.RTM_NEWROUTE, int(flags), m, f)
	}
	link := func(m unix.IfInfomsg, f fill) []byte { return message(unix.RTM_NEWLINK, 0, m, f) }
	filter := func(subsystem, kind int, flags netlink.HeaderFlags, f fill) []byte {
		return message(subsystem<<8|kind, int(flags), unix.Nfgenmsg{Nfgen_family: unix.AF_INET}, f)
	}
	for name, test := range map[string]struct {
		family uint16
		data   []byte
		want   string
	}{
		"a route of several ways has the first": {unix.NETLINK_ROUTE, route(netlink.Replace, unix.RtMsg{
			Dst_len: 8, Table: unix.RT_TABLE_MAIN,
		}, func(ae *netlink.AttributeEncoder) {
			ae.Bytes(unix.RTA_DST, []byte{10, 0, 0, 0})
			hop, _ := binary.Append(nil, binary.NativeEndian, unix.RtNexthop{Len: 16, Ifindex: 4})
			ae.Bytes(unix.RTA_MULTIPATH, append(hop,
				netlinktest.Attributes(func(ae *netlink.AttributeEncoder) { ae.Bytes(unix.RTA_GATEWAY, []byte{10, 1, 0, 1}) })...))
		}), "rtnetlink RTM_NEWROUTE: change route, index 4, to 10.0.0.0/8, via 10.1.0.1"},
		"a route by way of the other family": {unix.NETLINK_ROUTE, route(netlink.Excl, unix.RtMsg{}, func(ae *netlink.AttributeEncoder) {
			ae.Bytes(unix.RTA_VIA, append([]byte{unix.AF_INET6, 0}, netip.MustParseAddr("fe80::1").AsSlice()...))
			ae.Uint32(unix.RTA_OIF, 2)
			ae.Uint32(unix.RTA_TABLE, 1000)
		}), "rtnetlink RTM_NEWROUTE: add route, exclusive, index 2, to default, via fe80::1, table 1000"},
		"an address of a link between two is the near one": {unix.NETLINK_ROUTE, message(unix.RTM_NEWADDR, 0, unix.IfAddrmsg{
			Family: unix.AF_INET, Prefixlen: 32, Index: 3,
		}, func(ae *netlink.AttributeEncoder) {
			ae.Bytes(unix.IFA_ADDRESS, []byte{10, 0, 0, 2})
			ae.Bytes(unix.IFA_LOCAL, []byte{10, 0, 0, 1})
		}), "rtnetlink RTM_NEWADDR: change address, index 3, address 10.0.0.1/32"},
		"a name is made harmless": {unix.NETLINK_ROUTE, link(unix.IfInfomsg{}, func(ae *netlink.AttributeEncoder) {
			ae.String(unix.IFLA_IFNAME, "\x1b[2Jx")
		}), `rtnetlink RTM_NEWLINK: change link, \x1b[2Jx`},
		"of two namespaces the process's": {unix.NETLINK_ROUTE, link(unix.IfInfomsg{}, func(ae *netlink.AttributeEncoder) {
			ae.Uint32(unix.IFLA_NET_NS_PID, 7)
			ae.Uint32(unix.IFLA_NET_NS_FD, 3)
		}), "rtnetlink RTM_NEWLINK: change link, netns a process's"},
		"what a message lacks at its end is no error": {unix.NETLINK_ROUTE, link(unix.IfInfomsg{Index: 2}, func(ae *netlink.AttributeEncoder) {
			ae.Uint32(unix.IFLA_MTU, 1400)
			ae.String(unix.IFLA_IFNAME, "eth0")
		})[:46], "rtnetlink RTM_NEWLINK: change link, index 2, mtu 1400"},
		"a question has a name alone": {
			unix.NETLINK_ROUTE, message(unix.RTM_GETADDR, int(netlink.Dump), [1]byte{unix.AF_INET6}, nil),
			"rtnetlink RTM_GETADDR: query address",
		},
		"deleting many at once is not exclusive, though it is the same bit": {
			unix.NETLINK_NETFILTER, filter(unix.NFNL_SUBSYS_NFTABLES, unix.NFT_MSG_DELTABLE, 0x200, nil),
			"nf_tables NFT_MSG_DELTABLE: delete table",
		},
		"an ipset": {unix.NETLINK_NETFILTER, filter(unix.NFNL_SUBSYS_IPSET, 9, netlink.Excl, func(ae *netlink.AttributeEncoder) {
			ae.String(2, "pods")
		}), "ipset IPSET_CMD_ADD: add element, exclusive, table pods"},
		"connections that are forgotten": {
			unix.NETLINK_NETFILTER, filter(unix.NFNL_SUBSYS_CTNETLINK, 2, 0, nil),
			"conntrack IPCTNL_MSG_CT_DELETE: delete connection",
		},
		"what the packet filter has since": {
			unix.NETLINK_NETFILTER, filter(200, 3, 0, nil),
			"nfnetlink 200 message 51203:  ",
		},
		"the number of a generic family is asked for": {
			unix.NETLINK_GENERIC, message(unix.GENL_ID_CTRL, 0, [4]byte{unix.CTRL_CMD_GETFAMILY, 1}, nil),
			"generic netlink CTRL_CMD_GETFAMILY: query ",
		},
		"a generic family has any number": {
			unix.NETLINK_GENERIC, message(31, 0, [4]byte{1, 1}, nil),
			"generic netlink message 31:  ",
		},
		"another family": {unix.NETLINK_XFRM, message(16, 0, [4]byte{}, nil), "xfrm message 16:  "},
	} {
		t.Run(name, func(t *testing.T) {
			got := socket(test.family).Requests(test.data)
			if len(got) != 1 {
				t.Fatalf("%d events, %+v", len(got), got)
			}
			common(t, got[0], 77, 3)
			harness.Equal(t, summary(got[0]), test.want)
		})
	}
}

func TestMessagesOfOneCall(t *testing.T) {
	nft := func(kind netlink.HeaderType) []byte {
		return netlinktest.Message(unix.NFNL_SUBSYS_NFTABLES<<8|kind, netlink.Request, unix.Nfgenmsg{},
			func(ae *netlink.AttributeEncoder) { ae.String(1, "cni") })
	}
	begin, end := netlinktest.Message(unix.NFNL_MSG_BATCH_BEGIN, netlink.Request, unix.Nfgenmsg{},
		nil), netlinktest.Message(unix.NFNL_MSG_BATCH_END, netlink.Request, unix.Nfgenmsg{}, nil)
	got := socket(unix.NETLINK_NETFILTER).
		Requests(slices.Concat(begin, nft(unix.NFT_MSG_NEWTABLE), nft(unix.NFT_MSG_NEWRULE), nft(unix.NFT_MSG_NEWRULE),
			nft(unix.NFT_MSG_NEWSET), end))
	if len(got) != 3 || got[0].Count != 0 || got[1].Count != 2 || got[2].Name != "NFT_MSG_NEWSET" {
		t.Errorf("a batch: %+v", got)
	}
	up := netlinktest.Message(unix.RTM_NEWLINK, netlink.Request,
		unix.IfInfomsg{Index: 2, Flags: unix.IFF_UP, Change: unix.IFF_UP}, nil)
	if got := socket(unix.NETLINK_ROUTE).Requests(slices.Concat(up, up)); len(got) != 2 || got[0].Interface.State != "up" {
		t.Errorf("two interfaces are changed: %+v", got)
	}
}

func TestRefusals(t *testing.T) {
	asked := netlinktest.Message(unix.RTM_NEWADDR, netlink.Request, unix.IfAddrmsg{}, nil)
	words := netlinktest.Attributes(func(ae *netlink.AttributeEncoder) {
		ae.String(unix.NLMSGERR_ATTR_MSG, "Nexthop has \x1binvalid gateway.")
	})
	said := func(flags netlink.HeaderFlags, errno int32, rest ...byte) []byte {
		return netlinktest.Message(netlink.Error, flags, append(binary.NativeEndian.AppendUint32(nil, uint32(errno)), rest...), nil)
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
			got := socket(unix.NETLINK_ROUTE).Answers(test.answer)
			if test.want == nil && len(got) == 0 {
				return
			}
			if test.want == nil || len(got) != 1 {
				t.Fatalf("%+v, want %+v", got, test.want)
			}
			test.want.Process, test.want.Port, test.want.Sequence = "7@0", 77, 3
			harness.Equal(t, *got[0].(*event.Answer), *test.want, got[0], test.want)
		})
	}
}
