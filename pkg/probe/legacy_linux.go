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
	q.Protocol, q.Name, q.Query = "ioctl", c.name, c.query
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
	if len(data) < unix.IFNAMSIZ+8 || q.Error != "" && q.Query {
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

// control is an ioctl of sockets: its name, whether it only asks, and whether it is about
// the interface whose name its argument begins with.
type control struct {
	name         string
	query, about bool
}

// controls are those of include/uapi/linux/sockios.h that configure a network.
func controls() map[uint32]control {
	return map[uint32]control{
		unix.SIOCADDRT: {"SIOCADDRT", false, false},
		unix.SIOCDELRT: {"SIOCDELRT", false, false},
		unix.SIOCDARP:  {"SIOCDARP", false, false},
		unix.SIOCGARP:  {"SIOCGARP", true, false},
		unix.SIOCSARP:  {"SIOCSARP", false, false},
		unix.SIOCGIFBR: {"SIOCGIFBR", true, false},
		unix.SIOCSIFBR: {"SIOCSIFBR", false, false},

		unix.SIOCGIFNAME:    {"SIOCGIFNAME", true, true},
		unix.SIOCGIFCONF:    {"SIOCGIFCONF", true, false},
		unix.SIOCGIFFLAGS:   {"SIOCGIFFLAGS", true, true},
		unix.SIOCSIFFLAGS:   {"SIOCSIFFLAGS", false, true},
		unix.SIOCGIFADDR:    {"SIOCGIFADDR", true, true},
		unix.SIOCSIFADDR:    {"SIOCSIFADDR", false, true},
		unix.SIOCDIFADDR:    {"SIOCDIFADDR", false, true},
		unix.SIOCGIFDSTADDR: {"SIOCGIFDSTADDR", true, true},
		unix.SIOCSIFDSTADDR: {"SIOCSIFDSTADDR", false, true},
		unix.SIOCGIFBRDADDR: {"SIOCGIFBRDADDR", true, true},
		unix.SIOCSIFBRDADDR: {"SIOCSIFBRDADDR", false, true},
		unix.SIOCGIFNETMASK: {"SIOCGIFNETMASK", true, true},
		unix.SIOCSIFNETMASK: {"SIOCSIFNETMASK", false, true},
		unix.SIOCGIFMETRIC:  {"SIOCGIFMETRIC", true, true},
		unix.SIOCSIFMETRIC:  {"SIOCSIFMETRIC", false, true},
		unix.SIOCGIFMTU:     {"SIOCGIFMTU", true, true},
		unix.SIOCSIFMTU:     {"SIOCSIFMTU", false, true},
		unix.SIOCSIFNAME:    {"SIOCSIFNAME", false, true},
		unix.SIOCGIFHWADDR:  {"SIOCGIFHWADDR", true, true},
		unix.SIOCSIFHWADDR:  {"SIOCSIFHWADDR", false, true},
		unix.SIOCGIFINDEX:   {"SIOCGIFINDEX", true, true},
		unix.SIOCADDMULTI:   {"SIOCADDMULTI", false, true},
		unix.SIOCDELMULTI:   {"SIOCDELMULTI", false, true},
		unix.SIOCGIFTXQLEN:  {"SIOCGIFTXQLEN", true, true},
		unix.SIOCSIFTXQLEN:  {"SIOCSIFTXQLEN", false, true},
		unix.SIOCGIFMAP:     {"SIOCGIFMAP", true, true},
		unix.SIOCETHTOOL:    {"SIOCETHTOOL", false, true},
		unix.SIOCGIFVLAN:    {"SIOCGIFVLAN", true, false},
		unix.SIOCSIFVLAN:    {"SIOCSIFVLAN", false, false},

		unix.SIOCBRADDBR:       {"SIOCBRADDBR", false, true},
		unix.SIOCBRDELBR:       {"SIOCBRDELBR", false, true},
		unix.SIOCBRADDIF:       {"SIOCBRADDIF", false, true},
		unix.SIOCBRDELIF:       {"SIOCBRDELIF", false, true},
		unix.SIOCBONDENSLAVE:   {"SIOCBONDENSLAVE", false, true},
		unix.SIOCBONDRELEASE:   {"SIOCBONDRELEASE", false, true},
		unix.SIOCBONDINFOQUERY: {"SIOCBONDINFOQUERY", true, true},
	}
}
