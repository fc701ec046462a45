package netlink

// What golang.org/x/sys/unix lacks.
const (
	vethInfoPeer     = 1 // VETH_INFO_PEER (veth.h)
	ipsetAttrSetName = 2 // IPSET_ATTR_SETNAME (netfilter/ipset/ip_set.h)
)

// Sizes of names, with the terminating zero.
const (
	altIfNameSize = 128 // ALTIFNAMSIZ (if.h)
	kindSize      = 32
	xtTableSize   = 32  // XT_TABLE_MAXNAMELEN (netfilter/x_tables.h)
	setNameSize   = 32  // IPSET_MAXNAMELEN (netfilter/ipset/ip_set.h)
	nftNameSize   = 128 // half of NFT_NAME_MAXLEN (netfilter/nf_tables.h)
)

// trafficMsg is struct tcmsg (rtnetlink(7)).
type trafficMsg struct {
	Family       uint8
	_            [3]uint8
	Index        int32
	Handle       uint32
	Parent, Info uint32
}
