package netlink

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
)

// Ioctl decodes an ioctl(2) of a socket, with its argument on return; nil if it does not concern the network.
func (c *Call) Ioctl(command uint32, result int64, argument []byte) *event.Request {
	if command < firstControl {
		return nil
	}
	known := controls[command]
	q := c.request()
	q.Protocol, q.Name, q.Object, q.Verb = "ioctl", known.name, known.object, known.verb
	q.Error = c.Errno(result)
	if known.name == "" {
		q.Name = fmt.Sprintf("ioctl %#x", command)
	}
	if known.about {
		ifreq(q, argument)
	}
	return q
}

// Replace decodes setsockopt(2) with a struct ipt_replace or ip6t_replace (iptables-legacy).
func (c *Call) Replace(level uint64, result int64, option []byte) *event.Request {
	q := c.request()
	q.Object, q.Verb = event.ObjectTable, event.VerbChange
	q.Protocol, q.Name = "iptables", "IPT_SO_SET_REPLACE"
	if level == unix.SOL_IPV6 {
		q.Protocol, q.Name = "ip6tables", "IP6T_SO_SET_REPLACE"
	}
	q.Error = c.Errno(result)
	q.Table = foreign(option[:min(len(option), xtTableSize)], xtTableSize)
	return q
}

// ifreq reads a struct ifreq (netdevice(7)).
func ifreq(q *event.Request, data []byte) {
	q.Interface.Name = foreign(data[:min(len(data), unix.IFNAMSIZ)], unix.IFNAMSIZ)
	if len(data) < unix.IFNAMSIZ+8 || q.Error != "" && q.Query() {
		return
	}
	value := data[unix.IFNAMSIZ:]
	switch q.Name {
	case "SIOCSIFFLAGS":
		q.Interface.State = "down"
		if binary.NativeEndian.Uint16(value)&unix.IFF_UP != 0 {
			q.Interface.State = "up"
		}
	case "SIOCSIFMTU", "SIOCGIFMTU":
		q.Interface.MTU = binary.NativeEndian.Uint32(value)
	case "SIOCGIFINDEX", "SIOCGIFNAME":
		q.Interface.Index = binary.NativeEndian.Uint32(value)
	case "SIOCSIFADDR", "SIOCGIFADDR":
		if binary.NativeEndian.Uint16(value) == unix.AF_INET {
			q.Address = ipOf(value[4:8])
		}
	case "SIOCSIFHWADDR", "SIOCGIFHWADDR":
		q.Interface.MAC = mac(value[2:8])
	}
}

// control is an ioctl of sockets. If about is set, its argument is a struct ifreq.
type control struct {
	name   string
	verb   event.Verb
	object event.Object
	about  bool
}

// firstControl is SIOCADDRT; lower commands do not concern the network.
const firstControl = 0x890b

// controls are the network ioctls by number (include/uapi/linux/sockios.h).
var controls = func() map[uint32]control {
	const (
		add, change, remove, query = event.VerbAdd, event.VerbChange, event.VerbDelete, event.VerbQuery
		link, address, route       = event.ObjectLink, event.ObjectAddress, event.ObjectRoute
		neighbor, port             = event.ObjectNeighbor, event.ObjectPort
	)
	return map[uint32]control{
		0x890b: {"SIOCADDRT", add, route, false},
		0x890c: {"SIOCDELRT", remove, route, false},
		0x8953: {"SIOCDARP", remove, neighbor, false},
		0x8954: {"SIOCGARP", query, neighbor, false},
		0x8955: {"SIOCSARP", add, neighbor, false},
		0x8940: {"SIOCGIFBR", query, link, false},
		0x8941: {"SIOCSIFBR", change, link, false},

		0x8910: {"SIOCGIFNAME", query, link, true},
		0x8912: {"SIOCGIFCONF", query, link, false},
		0x8913: {"SIOCGIFFLAGS", query, link, true},
		0x8914: {"SIOCSIFFLAGS", change, link, true},
		0x8915: {"SIOCGIFADDR", query, address, true},
		0x8916: {"SIOCSIFADDR", add, address, true},
		0x8936: {"SIOCDIFADDR", remove, address, true},
		0x8917: {"SIOCGIFDSTADDR", query, address, true},
		0x8918: {"SIOCSIFDSTADDR", change, address, true},
		0x8919: {"SIOCGIFBRDADDR", query, address, true},
		0x891a: {"SIOCSIFBRDADDR", change, address, true},
		0x891b: {"SIOCGIFNETMASK", query, address, true},
		0x891c: {"SIOCSIFNETMASK", change, address, true},
		0x891d: {"SIOCGIFMETRIC", query, link, true},
		0x891e: {"SIOCSIFMETRIC", change, link, true},
		0x8921: {"SIOCGIFMTU", query, link, true},
		0x8922: {"SIOCSIFMTU", change, link, true},
		0x8923: {"SIOCSIFNAME", change, link, true},
		0x8927: {"SIOCGIFHWADDR", query, link, true},
		0x8924: {"SIOCSIFHWADDR", change, link, true},
		0x8933: {"SIOCGIFINDEX", query, link, true},
		0x8931: {"SIOCADDMULTI", add, address, true},
		0x8932: {"SIOCDELMULTI", remove, address, true},
		0x8942: {"SIOCGIFTXQLEN", query, link, true},
		0x8943: {"SIOCSIFTXQLEN", change, link, true},
		0x8970: {"SIOCGIFMAP", query, link, true},
		0x8946: {"SIOCETHTOOL", change, link, true},
		0x8982: {"SIOCGIFVLAN", query, link, false},
		0x8983: {"SIOCSIFVLAN", change, link, false},

		0x89a0: {"SIOCBRADDBR", add, link, true},
		0x89a1: {"SIOCBRDELBR", remove, link, true},
		0x89a2: {"SIOCBRADDIF", add, port, true},
		0x89a3: {"SIOCBRDELIF", remove, port, true},
		0x8990: {"SIOCBONDENSLAVE", add, port, true},
		0x8991: {"SIOCBONDRELEASE", remove, port, true},
		0x8994: {"SIOCBONDINFOQUERY", query, link, true},
	}
}()
