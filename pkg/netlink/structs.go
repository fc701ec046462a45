package netlink

// The fixed parts that messages begin with, as rtnetlink(7) has them.

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
	routeMsg struct { // struct rtmsg; struct fib_rule_hdr is laid out like it
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

// nextHopSize is that of a nextHop in bytes.
const nextHopSize = 8
