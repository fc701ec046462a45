package netlink

// golang.org/x/sys/unix has these only on Linux (include/uapi/linux).

// Netlink families (netlink.h).
const (
	netlinkRoute     = 0
	netlinkSockDiag  = 4
	netlinkXfrm      = 6
	netlinkAudit     = 9
	netlinkNetfilter = 12
	netlinkGeneric   = 16
)

// Headers and message types (netlink.h).
const (
	headerSize       = 16
	alignTo          = 4
	nlmsgMinType     = 16
	nlmsgerrAttrMsg  = 1
	genlIDCtrl       = 16 // genetlink.h: the family of families
	ctrlCmdGetFamily = 3
)

// Address families (socket.h) and flags of interfaces (if.h).
const (
	afInet   = 2
	afBridge = 7
	afInet6  = 10
	solIPv6  = 41
	iffUp    = 1
)

// rtnetlink.h, if_link.h, if_addr.h, neighbour.h, fib_rules.h, veth.h.
const (
	rtmBase    = 16
	rtmNewLink = 16
	rtmNewAddr = 20

	iflaAddress   = 1
	iflaIfName    = 3
	iflaMTU       = 4
	iflaMaster    = 10
	iflaLinkInfo  = 18
	iflaNetNSPID  = 19
	iflaNetNSFD   = 28
	iflaAltIfName = 53
	iflaInfoKind  = 1
	iflaInfoData  = 2
	vethInfoPeer  = 1

	ifaAddress    = 1
	ifaLocal      = 2
	ifaFlags      = 8
	ifaFDADFailed = 0x08
	ifaFTentative = 0x40

	rtaDst        = 1
	rtaOIF        = 4
	rtaGateway    = 5
	rtaMultipath  = 9
	rtaTable      = 15
	rtaVia        = 18
	rtTableUnspec = 0
	rtTableMain   = 254

	ndaDst    = 1
	ndaLLAddr = 2

	fraDst     = 1
	fraSrc     = 2
	fraIIFName = 3
	fraTable   = 15
	fraOIFName = 17
)

// netfilter/nfnetlink.h and the headers beside it.
const (
	nfnlMsgBatchBegin = 16
	nfnlMsgBatchEnd   = 17

	subsysCTNetlink    = 1
	subsysCTNetlinkExp = 2
	subsysIPSet        = 6
	subsysNFTables     = 10
	subsysNFTCompat    = 11

	nftaTableName    = 1
	nftaRuleChain    = 2
	nftaChainName    = 3
	ipsetAttrSetName = 2
)

// Sizes of names, with the terminating zero.
const (
	ifNameSize    = 16  // IFNAMSIZ (if.h)
	altIfNameSize = 128 // ALTIFNAMSIZ (if.h)
	kindSize      = 32
	xtTableSize   = 32  // XT_TABLE_MAXNAMELEN (netfilter/x_tables.h)
	setNameSize   = 32  // IPSET_MAXNAMELEN (netfilter/ipset/ip_set.h)
	nftNameSize   = 128 // half of NFT_NAME_MAXLEN (netfilter/nf_tables.h)
)

// Messages' fixed headers (rtnetlink(7)).

type (
	ifInfoMsg struct { // struct ifinfomsg
		Family        uint8
		_             uint8
		Type          uint16
		Index         int32
		Flags, Change uint32
	}
	ifAddrMsg struct { // struct ifaddrmsg
		Family, PrefixLen, Flags, Scope uint8
		Index                           uint32
	}
	routeMsg struct { // struct rtmsg; struct fib_rule_hdr is equal
		Family, DstLen, SrcLen, TOS  uint8
		Table, Protocol, Scope, Type uint8
		Flags                        uint32
	}
	nextHop struct { // struct rtnexthop
		Len         uint16
		Flags, Hops uint8
		Index       int32
	}
	neighborMsg struct { // struct ndmsg
		Family      uint8
		_           [3]uint8
		Index       int32
		State       uint16
		Flags, Type uint8
	}
	trafficMsg struct { // struct tcmsg
		Family       uint8
		_            [3]uint8
		Index        int32
		Handle       uint32
		Parent, Info uint32
	}
	netfilterHeader struct { // struct nfgenmsg
		Family, Version uint8
		Resource        uint16
	}
)

const nextHopSize = 8
