package probe

import (
	"fmt"
	"strings"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
)

// subsystem is one part of the kernel's packet filter that netlink leads to.
type subsystem struct {
	protocol, prefix string
	// messages are their names by number, without the prefix.
	messages []string
}

// subsystems are those of include/uapi/linux/netfilter/nfnetlink.h that network plugins
// use, with the enumerations of the headers beside it.
func subsystems(n uint8) (s subsystem) {
	switch n {
	case unix.NFNL_SUBSYS_NFTABLES:
		return subsystem{"nf_tables", "NFT_MSG_", []string{
			"NEWTABLE", "GETTABLE", "DELTABLE", "NEWCHAIN", "GETCHAIN", "DELCHAIN", "NEWRULE", "GETRULE", "DELRULE",
			"NEWSET", "GETSET", "DELSET", "NEWSETELEM", "GETSETELEM", "DELSETELEM", "NEWGEN", "GETGEN", "TRACE",
			"NEWOBJ", "GETOBJ", "DELOBJ", "GETOBJ_RESET", "NEWFLOWTABLE", "GETFLOWTABLE", "DELFLOWTABLE", "GETRULE_RESET",
			"DESTROYTABLE", "DESTROYCHAIN", "DESTROYRULE", "DESTROYSET", "DESTROYSETELEM", "DESTROYOBJ",
			"DESTROYFLOWTABLE", "GETSETELEM_RESET",
		}}
	case unix.NFNL_SUBSYS_NFT_COMPAT: // iptables asks which matches there are
		return subsystem{"nft_compat", "NFNL_MSG_COMPAT_", []string{"GET"}}
	case unix.NFNL_SUBSYS_IPSET:
		return subsystem{"ipset", "IPSET_CMD_", []string{
			"NONE", "PROTOCOL", "CREATE", "DESTROY", "FLUSH", "RENAME", "SWAP", "LIST", "SAVE", "ADD", "DEL", "TEST",
			"HEADER", "TYPE", "GET_BYNAME", "GET_BYINDEX",
		}}
	case unix.NFNL_SUBSYS_CTNETLINK:
		return subsystem{"conntrack", "IPCTNL_MSG_CT_", []string{
			"NEW", "GET", "DELETE", "GET_CTRZERO", "GET_STATS_CPU", "GET_STATS", "GET_DYING", "GET_UNCONFIRMED",
		}}
	case unix.NFNL_SUBSYS_CTNETLINK_EXP:
		return subsystem{"conntrack", "IPCTNL_MSG_EXP_", []string{"NEW", "GET", "DELETE", "GET_STATS_CPU"}}
	}
	return subsystem{protocol: fmt.Sprintf("nfnetlink %d", n)}
}

// query tells whether a message changes nothing.
func (s subsystem) query(name string) bool {
	if s.protocol == "ipset" {
		switch name {
		case "CREATE", "DESTROY", "FLUSH", "RENAME", "SWAP", "ADD", "DEL":
			return false
		}
		return name != ""
	}
	return strings.HasPrefix(name, "GET")
}

// netfilter reads a message to the packet filter: a struct nfgenmsg and attributes. The
// number of the subsystem is in the upper half of its type.
func netfilter(q *event.Request, m netlink.Message) {
	s, n, name := subsystems(uint8(m.Header.Type>>8)), int(m.Header.Type&0xff), ""
	if n < len(s.messages) {
		name = s.messages[n]
		q.Name = s.prefix + name
	}
	q.Protocol, q.Query = s.protocol, s.query(name)
	// The same bit means something else where nothing is made.
	makes := strings.HasPrefix(name, "NEW") || s.protocol == "ipset" && (name == "CREATE" || name == "ADD")
	q.Exclusive = makes && m.Header.Flags&netlink.Excl != 0
	var head unix.Nfgenmsg
	rest, ok := fixed(m.Data, &head)
	if !ok {
		return
	}
	attributes(rest, func(ad *netlink.AttributeDecoder) {
		switch at := ad.Type(); {
		case s.protocol == "ipset" && at == 2: // IPSET_ATTR_SETNAME
			q.Table = foreign(ad.Bytes(), 32)
		// Every object of nf_tables begins with the name of its table.
		case s.protocol == "nf_tables" && at == unix.NFTA_TABLE_NAME && !strings.HasSuffix(name, "GEN"):
			q.Table = foreign(ad.Bytes(), 128)
		case strings.HasSuffix(q.Name, "CHAIN") && at == unix.NFTA_CHAIN_NAME,
			strings.HasPrefix(q.Name, "NFT_MSG_") && strings.Contains(q.Name, "RULE") && at == unix.NFTA_RULE_CHAIN:
			q.Chain = foreign(ad.Bytes(), 128)
		}
	})
}
