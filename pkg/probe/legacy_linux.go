package probe

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
)

// tableName is XT_TABLE_MAXNAMELEN (include/uapi/linux/netfilter/x_tables.h).
const tableName = 32

// legacy is an ioctl on a socket, or a table of iptables' own interface; nil where that
// has nothing to do with the network's configuration.
func legacy(r record) *event.Request {
	q := &event.Request{
		Process: r.process, Thread: r.Thread, Start: int64(r.Start),
		Error: errno(r.Ret), NetNS: namespace(r.NetnsCookie, r.NetnsInum),
	}
	if insideClass(r.Class) == insideClassCLASS_SETSOCKOPT {
		q.Object, q.Verb = event.ObjectTable, event.VerbChange
		q.Protocol, q.Name = "iptables", "IPT_SO_SET_REPLACE"
		if r.Args[1] == unix.SOL_IPV6 {
			q.Protocol, q.Name = "ip6tables", "IP6T_SO_SET_REPLACE"
		}
		q.Table = foreign(r.data[:min(len(r.data), tableName)], tableName)
		return q
	}
	// The first ones are about sockets, not about interfaces.
	command := uint32(r.Args[1])
	if command < unix.SIOCADDRT {
		return nil
	}
	c := controls()[command]
	q.Protocol, q.Name, q.Object, q.Verb = "ioctl", c.name, c.object, c.verb
	if c.name == "" {
		q.Name = fmt.Sprintf("ioctl %#x", command)
	}
	if c.about {
		ifreq(q, command, r.data)
	}
	return q
}

// ifreq reads a struct ifreq (netdevice(7)): a name, and what it is to have.
func ifreq(q *event.Request, command uint32, data []byte) {
	q.Interface.Name = foreign(data[:min(len(data), unix.IFNAMSIZ)], unix.IFNAMSIZ)
	if len(data) < unix.IFNAMSIZ+8 || q.Error != "" && q.Verb == event.VerbQuery {
		return
	}
	value := data[unix.IFNAMSIZ:]
	number := binary.NativeEndian.Uint32(value)
	switch command {
	case unix.SIOCSIFFLAGS:
		q.Interface.State = "down"
		if binary.NativeEndian.Uint16(value)&unix.IFF_UP != 0 {
			q.Interface.State = "up"
		}
	case unix.SIOCSIFMTU, unix.SIOCGIFMTU:
		q.Interface.MTU = number
	case unix.SIOCGIFINDEX, unix.SIOCGIFNAME:
		q.Interface.Index = number
	case unix.SIOCSIFADDR, unix.SIOCGIFADDR:
		if binary.NativeEndian.Uint16(value) == unix.AF_INET {
			q.Address = ipOf(value[4:8])
		}
	case unix.SIOCSIFHWADDR, unix.SIOCGIFHWADDR:
		q.Interface.MAC = mac(value[2:8])
	}
}

// control is an ioctl of sockets: its name, what it does to what, and whether its argument
// begins with the name of the interface that it is about (struct ifreq).
type control struct {
	name   string
	verb   event.Verb
	object event.Object
	about  bool
}

// controls are those of include/uapi/linux/sockios.h that configure a network.
func controls() map[uint32]control {
	const (
		add, change, remove, query = event.VerbAdd, event.VerbChange, event.VerbDelete, event.VerbQuery
		link, address, route       = event.ObjectLink, event.ObjectAddress, event.ObjectRoute
		neighbor, port             = event.ObjectNeighbor, event.ObjectPort
	)
	return map[uint32]control{
		unix.SIOCADDRT: {"SIOCADDRT", add, route, false},
		unix.SIOCDELRT: {"SIOCDELRT", remove, route, false},
		unix.SIOCDARP:  {"SIOCDARP", remove, neighbor, false},
		unix.SIOCGARP:  {"SIOCGARP", query, neighbor, false},
		unix.SIOCSARP:  {"SIOCSARP", add, neighbor, false},
		unix.SIOCGIFBR: {"SIOCGIFBR", query, link, false},
		unix.SIOCSIFBR: {"SIOCSIFBR", change, link, false},

		unix.SIOCGIFNAME:    {"SIOCGIFNAME", query, link, true},
		unix.SIOCGIFCONF:    {"SIOCGIFCONF", query, link, false},
		unix.SIOCGIFFLAGS:   {"SIOCGIFFLAGS", query, link, true},
		unix.SIOCSIFFLAGS:   {"SIOCSIFFLAGS", change, link, true},
		unix.SIOCGIFADDR:    {"SIOCGIFADDR", query, address, true},
		unix.SIOCSIFADDR:    {"SIOCSIFADDR", add, address, true},
		unix.SIOCDIFADDR:    {"SIOCDIFADDR", remove, address, true},
		unix.SIOCGIFDSTADDR: {"SIOCGIFDSTADDR", query, address, true},
		unix.SIOCSIFDSTADDR: {"SIOCSIFDSTADDR", change, address, true},
		unix.SIOCGIFBRDADDR: {"SIOCGIFBRDADDR", query, address, true},
		unix.SIOCSIFBRDADDR: {"SIOCSIFBRDADDR", change, address, true},
		unix.SIOCGIFNETMASK: {"SIOCGIFNETMASK", query, address, true},
		unix.SIOCSIFNETMASK: {"SIOCSIFNETMASK", change, address, true},
		unix.SIOCGIFMETRIC:  {"SIOCGIFMETRIC", query, link, true},
		unix.SIOCSIFMETRIC:  {"SIOCSIFMETRIC", change, link, true},
		unix.SIOCGIFMTU:     {"SIOCGIFMTU", query, link, true},
		unix.SIOCSIFMTU:     {"SIOCSIFMTU", change, link, true},
		unix.SIOCSIFNAME:    {"SIOCSIFNAME", change, link, true},
		unix.SIOCGIFHWADDR:  {"SIOCGIFHWADDR", query, link, true},
		unix.SIOCSIFHWADDR:  {"SIOCSIFHWADDR", change, link, true},
		unix.SIOCGIFINDEX:   {"SIOCGIFINDEX", query, link, true},
		unix.SIOCADDMULTI:   {"SIOCADDMULTI", add, address, true},
		unix.SIOCDELMULTI:   {"SIOCDELMULTI", remove, address, true},
		unix.SIOCGIFTXQLEN:  {"SIOCGIFTXQLEN", query, link, true},
		unix.SIOCSIFTXQLEN:  {"SIOCSIFTXQLEN", change, link, true},
		unix.SIOCGIFMAP:     {"SIOCGIFMAP", query, link, true},
		unix.SIOCETHTOOL:    {"SIOCETHTOOL", change, link, true},
		unix.SIOCGIFVLAN:    {"SIOCGIFVLAN", query, link, false},
		unix.SIOCSIFVLAN:    {"SIOCSIFVLAN", change, link, false},

		unix.SIOCBRADDBR:       {"SIOCBRADDBR", add, link, true},
		unix.SIOCBRDELBR:       {"SIOCBRDELBR", remove, link, true},
		unix.SIOCBRADDIF:       {"SIOCBRADDIF", add, port, true},
		unix.SIOCBRDELIF:       {"SIOCBRDELIF", remove, port, true},
		unix.SIOCBONDENSLAVE:   {"SIOCBONDENSLAVE", add, port, true},
		unix.SIOCBONDRELEASE:   {"SIOCBONDRELEASE", remove, port, true},
		unix.SIOCBONDINFOQUERY: {"SIOCBONDINFOQUERY", query, link, true},
	}
}
