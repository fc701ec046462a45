package probe

import (
	"net"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// vethInfoPeer is VETH_INFO_PEER (include/uapi/linux/veth.h).
const vethInfoPeer = 1

// link reads a struct ifinfomsg with its attributes (rtnetlink(7)). Only a change says
// what state the interface is to be in.
func (in *interior) link(q *event.Request, r record, data []byte, change bool) {
	var m unix.IfInfomsg
	rest, ok := fixed(data, &m)
	if !ok {
		return
	}
	i := &q.Interface
	i.Index = uint32(max(m.Index, 0))
	if change && m.Index == 0 && len(rest) == 0 {
		q.Verb = event.VerbQuery // ip asks in this way whether the kernel knows the message
	}
	// A mask of none means all (rtnl_dev_get_flags), where any flag is set.
	if change && (m.Change&unix.IFF_UP != 0 || m.Change == 0 && m.Flags&unix.IFF_UP != 0) {
		i.State = "down"
		if m.Flags&unix.IFF_UP != 0 {
			i.State = "up"
		}
	}
	if m.Family == unix.AF_BRIDGE {
		return // settings of a bridge's port
	}
	attributes(rest, func(ad *netlink.AttributeDecoder) {
		switch ad.Type() {
		case unix.IFLA_MASTER:
			i.Master = ad.Uint32()
		case unix.IFLA_LINKINFO:
			in.kind(i, r, ad.Bytes())
		case unix.IFLA_NET_NS_FD, unix.IFLA_NET_NS_PID:
			i.NetNS = in.target(r, ad)
		default:
			named(i, ad)
		}
	})
}

// named reads one attribute of what an interface is called and how it is set.
func named(i *event.Interface, ad *netlink.AttributeDecoder) {
	switch ad.Type() {
	case unix.IFLA_IFNAME:
		i.Name = foreign(ad.Bytes(), unix.IFNAMSIZ)
	case unix.IFLA_ALT_IFNAME:
		if i.Name == "" {
			i.Name = foreign(ad.Bytes(), 128) // ALTIFNAMSIZ
		}
	case unix.IFLA_ADDRESS:
		i.MAC = mac(ad.Bytes())
	case unix.IFLA_MTU:
		i.MTU = ad.Uint32()
	}
}

// kind reads what sort of interface it is, and of a veth pair its other end.
func (in *interior) kind(i *event.Interface, r record, info []byte) {
	var data []byte
	attributes(info, func(ad *netlink.AttributeDecoder) {
		switch ad.Type() {
		case unix.IFLA_INFO_KIND:
			i.Kind = foreign(ad.Bytes(), 32)
		case unix.IFLA_INFO_DATA:
			data = ad.Bytes()
		}
	})
	if i.Kind != "veth" {
		return
	}
	attributes(data, func(ad *netlink.AttributeDecoder) {
		var m unix.IfInfomsg
		rest, ok := fixed(ad.Bytes(), &m)
		if ad.Type() != vethInfoPeer || !ok {
			return
		}
		attributes(rest, func(ad *netlink.AttributeDecoder) {
			switch ad.Type() {
			case unix.IFLA_IFNAME:
				i.Peer = foreign(ad.Bytes(), unix.IFNAMSIZ)
			case unix.IFLA_NET_NS_FD, unix.IFLA_NET_NS_PID:
				i.PeerNetNS = in.target(r, ad)
			}
		})
	})
}

// target is the namespace that an attribute names, by a descriptor or by somebody who is
// in it; empty if that is not known.
func (in *interior) target(r record, ad *netlink.AttributeDecoder) event.Namespace {
	n := ad.Uint32()
	if ad.Type() == unix.IFLA_NET_NS_FD {
		p := in.processes[r.process]
		if p == nil || p.files[n] == 0 {
			return event.Namespace{}
		}
		return in.namespaceOf(p.files[n])
	}
	// The process counts as its own PID namespace does.
	own, err1 := procfs.OwnNamespace("pid")
	its, err2 := procfs.Namespace(int(r.H.Task.Pid), "pid")
	if err1 != nil || err2 != nil || own != its {
		return event.Namespace{}
	}
	inode, err := procfs.Namespace(int(n), "net")
	if err != nil {
		return event.Namespace{}
	}
	return in.namespaceOf(inode)
}

// mac is a link-layer address; of InfiniBand it has 20 bytes.
func mac(b []byte) string {
	if len(b) > 20 {
		return ""
	}
	return net.HardwareAddr(b).String()
}
