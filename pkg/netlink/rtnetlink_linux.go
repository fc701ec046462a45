package netlink

import (
	"cmp"
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
	if q.Verb != event.VerbQuery || m.Dst_len > 0 {
		q.Route = "default"
	}
	if m.Dst_len > 0 {
		q.Route = cmp.Or(prefix(rest.value(unix.RTA_DST), m.Dst_len), q.Route)
	}
	way := rest
	if ways := rest.value(unix.RTA_MULTIPATH); len(ways) >= unix.SizeofRtNexthop {
		var hop unix.RtNexthop
		way, _ = fixed(ways, &hop)
		way = way[:min(len(way), max(0, int(hop.Len)-unix.SizeofRtNexthop))]
		q.Interface.Index = uint32(max(hop.Ifindex, 0))
	}
	q.Interface.Index = cmp.Or(way.number(unix.RTA_OIF), q.Interface.Index)
	q.Gateway = ipOf(way.value(unix.RTA_GATEWAY))
	if via := way.value(unix.RTA_VIA); len(via) > 2 {
		q.Gateway = ipOf(via[2:])
	}
	q.Table = table(m, rest, unix.RT_TABLE_MAIN)
}

// table returns the table of a route or rule (their attributes are equal); empty for the usual one.
func table(m unix.RtMsg, rest attributes, usual uint32) string {
	n := uint32(m.Table)
	if rest.value(unix.RTA_TABLE) != nil {
		n = rest.number(unix.RTA_TABLE)
	}
	if n == unix.RT_TABLE_UNSPEC || n == usual {
		return ""
	}
	return strconv.FormatUint(uint64(n), 10)
}

// neighbor reads a struct ndmsg (rtnetlink(7)).
func neighbor(q *event.Request, data []byte) {
	var m unix.NdMsg
	if rest, ok := fixed(data, &m); ok {
		q.Interface.Index, q.Interface.MAC = uint32(max(m.Ifindex, 0)), mac(rest.value(unix.NDA_LLADDR))
		q.Address = ipOf(rest.value(unix.NDA_DST))
	}
}

// rule reads a struct fib_rule_hdr (include/uapi/linux/fib_rules.h).
func rule(q *event.Request, data []byte) {
	var m unix.RtMsg
	rest, ok := fixed(data, &m)
	if !ok {
		return
	}
	q.Address, q.Route = prefix(rest.value(unix.FRA_SRC), m.Src_len), prefix(rest.value(unix.FRA_DST), m.Dst_len)
	q.Interface.Name = cmp.Or(rest.text(unix.FRA_OIFNAME, unix.IFNAMSIZ), rest.text(unix.FRA_IIFNAME, unix.IFNAMSIZ))
	q.Table = table(m, rest, unix.RT_TABLE_UNSPEC)
}
