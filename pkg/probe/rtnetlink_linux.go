package probe

import (
	"strconv"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
)

// group is one of rtnetlink's groups of four messages: NEW, DEL, GET and SET.
type group struct {
	name   string
	object event.Object
}

// groups are those of rtnetlink, by number: (RTM_NEWLINK - RTM_BASE) / 4 is 0
// (include/uapi/linux/rtnetlink.h). Those that plugins do not ask about have no object.
func groups() []group {
	return []group{
		{"LINK", event.ObjectLink}, {"ADDR", event.ObjectAddress}, {"ROUTE", event.ObjectRoute},
		{"NEIGH", event.ObjectNeighbor}, {"RULE", event.ObjectRule}, {"QDISC", event.ObjectQdisc},
		{"TCLASS", event.ObjectClass}, {"TFILTER", event.ObjectFilter}, {"ACTION", event.ObjectAction},
		{"PREFIX", ""}, {"MULTICAST", ""}, {"ANYCAST", ""}, {"NEIGHTBL", ""}, {"NDUSEROPT", ""}, {"ADDRLABEL", ""},
		{"DCB", ""}, {"NETCONF", ""}, {"MDB", event.ObjectMDB}, {"NSID", event.ObjectNetNS}, {"STATS", ""},
		{"CACHEREPORT", ""}, {"CHAIN", event.ObjectChain}, {"NEXTHOP", event.ObjectNextHop}, {"LINKPROP", event.ObjectLink},
		{"VLAN", event.ObjectVLAN}, {"NEXTHOPBUCKET", event.ObjectNextHop}, {"TUNNEL", ""},
	}
}

// The four messages of each group.
const (
	verbNew = iota
	verbDelete
	verbGet
	verbSet
)

// rtnetlink reads a message about interfaces, addresses, routes …
func (in *interior) rtnetlink(q *event.Request, r record, m netlink.Message) {
	n := int(m.Header.Type) - unix.RTM_BASE
	verb := n & 3
	if all := groups(); n/4 < len(all) {
		q.Name = "RTM_" + [...]string{"NEW", "DEL", "GET", "SET"}[verb] + all[n/4].name
		q.Object = all[n/4].object
	}
	q.Verb = [...]event.Verb{event.VerbChange, event.VerbDelete, event.VerbQuery, event.VerbChange}[verb]
	if verb == verbNew && m.Header.Flags&(netlink.Create|netlink.Excl) != 0 {
		q.Verb = event.VerbAdd
	}
	q.Exclusive = verb == verbNew && m.Header.Flags&netlink.Excl != 0
	switch m.Header.Type - netlink.HeaderType(verb) {
	case unix.RTM_NEWLINK:
		in.link(q, r, m.Data, verb != verbDelete && verb != verbGet)
	case unix.RTM_NEWADDR:
		in.address(q, r, m)
	case unix.RTM_NEWROUTE:
		route(q, m.Data)
	case unix.RTM_NEWNEIGH:
		neighbor(q, m.Data)
	case unix.RTM_NEWRULE:
		rule(q, m.Data)
	case unix.RTM_NEWQDISC, unix.RTM_NEWTCLASS, unix.RTM_NEWTFILTER:
		var t trafficMessage
		if _, ok := fixed(m.Data, &t); ok {
			q.Interface.Index = uint32(max(t.Index, 0))
		}
	}
}

// trafficMessage is struct tcmsg (include/uapi/linux/rtnetlink.h).
type trafficMessage struct {
	Family       uint8
	_            [3]uint8
	Index        int32
	Handle       uint32
	Parent, Info uint32
}

// route reads a struct rtmsg with its attributes (rtnetlink(7)).
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
	attributes(rest, func(ad *netlink.AttributeDecoder) {
		switch ad.Type() {
		case unix.RTA_DST:
			if s := prefix(ad.Bytes(), m.Dst_len); m.Dst_len > 0 && s != "" {
				q.Route = s
			}
		case unix.RTA_TABLE:
			table = ad.Uint32()
		case unix.RTA_MULTIPATH: // the first of its ways stands for all
			var hop unix.RtNexthop
			if within, ok := fixed(ad.Bytes(), &hop); ok {
				q.Interface.Index = uint32(max(hop.Ifindex, 0))
				attributes(within[:min(len(within), max(0, int(hop.Len)-unix.SizeofRtNexthop))], func(ad *netlink.AttributeDecoder) { way(q, ad) })
			}
		default:
			way(q, ad)
		}
	})
	// Most routes are in the main table, and which it is matters for the others only.
	if table != unix.RT_TABLE_UNSPEC && table != unix.RT_TABLE_MAIN {
		q.Table = strconv.FormatUint(uint64(table), 10)
	}
}

// way reads one attribute of how a route leads where it does.
func way(q *event.Request, ad *netlink.AttributeDecoder) {
	switch ad.Type() {
	case unix.RTA_OIF:
		q.Interface.Index = ad.Uint32()
	case unix.RTA_GATEWAY:
		q.Gateway = ipOf(ad.Bytes())
	case unix.RTA_VIA: // by another family: struct rtvia
		if b := ad.Bytes(); len(b) > 2 {
			q.Gateway = ipOf(b[2:])
		}
	}
}

// neighbor reads a struct ndmsg with its attributes (rtnetlink(7)).
func neighbor(q *event.Request, data []byte) {
	var m unix.NdMsg
	rest, ok := fixed(data, &m)
	if !ok {
		return
	}
	q.Interface.Index = uint32(max(m.Ifindex, 0))
	attributes(rest, func(ad *netlink.AttributeDecoder) {
		switch ad.Type() {
		case unix.NDA_DST:
			q.Address = ipOf(ad.Bytes())
		case unix.NDA_LLADDR:
			q.Interface.MAC = mac(ad.Bytes())
		}
	})
}

// rule reads a struct fib_rule_hdr (include/uapi/linux/fib_rules.h), which is laid out
// like a route.
func rule(q *event.Request, data []byte) {
	var m unix.RtMsg
	rest, ok := fixed(data, &m)
	if !ok {
		return
	}
	table := uint32(m.Table)
	attributes(rest, func(ad *netlink.AttributeDecoder) {
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
