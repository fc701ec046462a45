package netlink

import (
	"strconv"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
)

// group is an object with four messages: NEW, DEL, GET and SET.
type group struct {
	name   string
	object event.Object
}

// groups are indexed by (type - RTM_BASE) / 4 (include/uapi/linux/rtnetlink.h).
var groups = []group{
	{"LINK", event.ObjectLink},
	{"ADDR", event.ObjectAddress},
	{"ROUTE", event.ObjectRoute},
	{"NEIGH", event.ObjectNeighbor},
	{"RULE", event.ObjectRule},
	{"QDISC", event.ObjectQdisc},
	{"TCLASS", event.ObjectClass},
	{"TFILTER", event.ObjectFilter},
	{"ACTION", event.ObjectAction},
	{"PREFIX", ""},
	{"MULTICAST", ""},
	{"ANYCAST", ""},
	{"NEIGHTBL", ""},
	{"NDUSEROPT", ""},
	{"ADDRLABEL", ""},
	{"DCB", ""},
	{"NETCONF", ""},
	{"MDB", event.ObjectMDB},
	{"NSID", event.ObjectNetNS},
	{"STATS", ""},
	{"CACHEREPORT", ""},
	{"CHAIN", event.ObjectChain},
	{"NEXTHOP", event.ObjectNextHop},
	{"LINKPROP", event.ObjectLink},
	{"VLAN", event.ObjectVLAN},
	{"NEXTHOPBUCKET", event.ObjectNextHop},
	{"TUNNEL", ""},
}

const verbNew = 0

func (c *Call) rtnetlink(q *event.Request, m netlink.Message) {
	n := int(m.Header.Type) - unix.RTM_BASE
	verb := n & 3
	if n/4 < len(groups) {
		q.Name = "RTM_" + [...]string{"NEW", "DEL", "GET", "SET"}[verb] + groups[n/4].name
		q.Object = groups[n/4].object
	}
	q.Verb = [...]event.Verb{event.VerbChange, event.VerbDelete, event.VerbQuery, event.VerbChange}[verb]
	if verb == verbNew {
		q.Exclusive = m.Header.Flags&netlink.Excl != 0
		if m.Header.Flags&(netlink.Create|netlink.Excl) != 0 {
			q.Verb = event.VerbAdd
		}
	}
	switch q.Object {
	case event.ObjectLink:
		c.link(q, m.Data)
	case event.ObjectAddress:
		if a, ok := assignment(m.Data); ok {
			q.Interface.Index, q.Address = a.index, a.address
		}
	case event.ObjectRoute:
		route(q, m.Data)
	case event.ObjectNeighbor:
		neighbor(q, m.Data)
	case event.ObjectRule:
		rule(q, m.Data)
	case event.ObjectQdisc, event.ObjectClass, event.ObjectFilter:
		var t trafficMsg
		if _, ok := fixed(m.Data, &t); ok {
			q.Interface.Index = uint32(max(t.Index, 0))
		}
	}
}

// route reads a struct rtmsg (rtnetlink(7)).
func route(q *event.Request, data []byte) {
	var m unix.RtMsg
	rest, ok := fixed(data, &m)
	if !ok || m.Family != unix.AF_INET && m.Family != unix.AF_INET6 {
		return
	}
	table := uint32(m.Table)
	if q.Verb != event.VerbQuery || m.Dst_len > 0 {
		q.Route = "default"
	}
	attributes(rest, func(ad attribute) {
		switch ad.Type() {
		case unix.RTA_DST:
			if s := prefix(ad.Bytes(), m.Dst_len); m.Dst_len > 0 && s != "" {
				q.Route = s
			}
		case unix.RTA_TABLE:
			table = ad.Uint32()
		case unix.RTA_MULTIPATH:
			var hop unix.RtNexthop
			if within, ok := fixed(ad.Bytes(), &hop); ok {
				q.Interface.Index = uint32(max(hop.Ifindex, 0))
				within = within[:min(len(within), max(0, int(hop.Len)-unix.SizeofRtNexthop))]
				attributes(within, func(ad attribute) { way(q, ad) })
			}
		default:
			way(q, ad)
		}
	})
	if table != unix.RT_TABLE_UNSPEC && table != unix.RT_TABLE_MAIN {
		q.Table = strconv.FormatUint(uint64(table), 10)
	}
}

func way(q *event.Request, ad attribute) {
	switch ad.Type() {
	case unix.RTA_OIF:
		q.Interface.Index = ad.Uint32()
	case unix.RTA_GATEWAY:
		q.Gateway = ipOf(ad.Bytes())
	case unix.RTA_VIA:
		if b := ad.Bytes(); len(b) > 2 {
			q.Gateway = ipOf(b[2:])
		}
	}
}

// neighbor reads a struct ndmsg (rtnetlink(7)).
func neighbor(q *event.Request, data []byte) {
	var m unix.NdMsg
	rest, ok := fixed(data, &m)
	if !ok {
		return
	}
	q.Interface.Index = uint32(max(m.Ifindex, 0))
	attributes(rest, func(ad attribute) {
		switch ad.Type() {
		case unix.NDA_DST:
			q.Address = ipOf(ad.Bytes())
		case unix.NDA_LLADDR:
			q.Interface.MAC = mac(ad.Bytes())
		}
	})
}

// rule reads a struct fib_rule_hdr (include/uapi/linux/fib_rules.h).
func rule(q *event.Request, data []byte) {
	var m unix.RtMsg
	rest, ok := fixed(data, &m)
	if !ok {
		return
	}
	table := uint32(m.Table)
	attributes(rest, func(ad attribute) {
		switch ad.Type() {
		case unix.FRA_SRC:
			q.Address = prefix(ad.Bytes(), m.Src_len)
		case unix.FRA_DST:
			q.Route = prefix(ad.Bytes(), m.Dst_len)
		case unix.FRA_TABLE:
			table = ad.Uint32()
		case unix.FRA_IIFNAME, unix.FRA_OIFNAME:
			q.Interface.Name = foreign(ad.Bytes(), unix.IFNAMSIZ)
		}
	})
	if table != unix.RT_TABLE_UNSPEC {
		q.Table = strconv.FormatUint(uint64(table), 10)
	}
}
