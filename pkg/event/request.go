package event

// Request is what a thread asked of the kernel's network configuration: to change it, or to
// tell about it. One is a netlink message, an ioctl of a socket, a table of iptables, or a command of
// bpf(2).
// Event.Time is when the system call was over.
type Request struct {
	Process Process `json:"process"`
	Thread  uint32  `json:"thread,omitempty"`
	// Start is when the system call began, which all messages in it share.
	Start int64 `json:"start"`
	// Object is what it is about, and Verb what is to be done with that. Either is empty
	// where the source does not know the message.
	Object Object `json:"object,omitempty"`
	Verb   Verb   `json:"verb,omitempty"`
	// Protocol is "rtnetlink", "nf_tables", "iptables", "ioctl", "bpf", or another netlink family.
	Protocol string `json:"protocol"`
	// Name is what the kernel's headers call the message ("RTM_NEWLINK", "SIOCBRADDIF"). It
	// is for people to read: Object and Verb say what it means.
	Name string `json:"name"`
	// Exclusive says that it is to fail if the object exists (NLM_F_EXCL).
	Exclusive bool `json:"exclusive,omitempty"`
	// Port and Sequence are the message's, and those of the kernel's Answer to it.
	Port     uint32 `json:"port,omitempty"`
	Sequence uint32 `json:"sequence,omitempty"`
	// Count is how many messages of this kind were sent at once, if more than one. The
	// fields below are those of the first.
	Count int `json:"count,omitempty"`
	// Error is the error of an ioctl, setsockopt or bpf, as "EPERM". Netlink reports by Answer.
	Error string `json:"error,omitempty"`
	// NetNS is the namespace it was asked in: the socket's.
	NetNS     Namespace `json:"netns,omitzero"`
	Interface Interface `json:"interface,omitzero"`
	// Address is an interface's, with its prefix ("10.22.0.5/16"); a neighbor's; of a
	// routing rule the source it matches.
	Address string `json:"address,omitempty"`
	// Route is the destination of a route or routing rule, Gateway its next hop.
	Route   string `json:"route,omitempty"`
	Gateway string `json:"gateway,omitempty"`
	// Table and Chain are those of a packet filter's rule. Table is also the name of an
	// ipset, and the number of a routing table other than main.
	Table string `json:"table,omitempty"`
	Chain string `json:"chain,omitempty"`
	// Program is what a BPF program is called, or a map: 15 letters of it. Type is its kind ("sched_cls",
	// "lru_hash"), or of an attachment where that is ("tcx_ingress"); Path where an object is pinned, or the
	// cgroup that a program is attached to.
	Program string `json:"program,omitempty"`
	Type    string `json:"type,omitempty"`
	Path    string `json:"path,omitempty"`
	// Mentions are the ids of the sandboxes with an open call that it names; only of what an agent asks.
	Mentions []string `json:"mentions,omitempty"`
}

// Query reports whether it changes nothing.
func (r *Request) Query() bool { return r.Verb == VerbQuery }

// Verb is what a request is to do with its object.
type Verb string

// The verbs.
const (
	VerbAdd    Verb = "add"
	VerbChange Verb = "change"
	VerbDelete Verb = "delete"
	VerbQuery  Verb = "query"
)

// Object is the kind of thing that a request is about.
type Object string

// The objects of routing and of interfaces, as ip(8), bridge(8) and tc(8) call them.
const (
	ObjectLink     Object = "link"
	ObjectPort     Object = "port" // of a bridge or bond
	ObjectAddress  Object = "address"
	ObjectRoute    Object = "route"
	ObjectNextHop  Object = "nexthop"
	ObjectNeighbor Object = "neighbor"
	ObjectRule     Object = "rule" // of routing, or of a packet filter
	ObjectNetNS    Object = "netns"
	ObjectVLAN     Object = "vlan"
	ObjectMDB      Object = "mdb"
	ObjectQdisc    Object = "qdisc"
	ObjectClass    Object = "class"
	ObjectFilter   Object = "filter"
	ObjectAction   Object = "action"
)

// The objects of packet filters and connection tracking, as nft(8), ipset(8) and conntrack(8) call them.
const (
	ObjectRuleset     Object = "ruleset"
	ObjectTable       Object = "table"
	ObjectChain       Object = "chain"
	ObjectSet         Object = "set"
	ObjectElement     Object = "element" // of a set
	ObjectStateful    Object = "stateful object"
	ObjectFlowtable   Object = "flowtable"
	ObjectExtension   Object = "extension" // of iptables: a match or target
	ObjectConnection  Object = "connection"
	ObjectExpectation Object = "expectation"
)

// The objects of BPF, as bpftool(8) calls them; an attachment of a program is a link, or older.
const (
	ObjectProgram    Object = "program"
	ObjectMap        Object = "map"
	ObjectPin        Object = "pin"
	ObjectAttachment Object = "attachment"
)

// Interface is what a request says of a network interface.
type Interface struct {
	Index uint32 `json:"index,omitempty"`
	Name  string `json:"name,omitempty"`
	// Kind is the kernel's word: "veth", "bridge".
	Kind string `json:"kind,omitempty"`
	// Peer is the other end of a veth pair.
	Peer string `json:"peer,omitempty"`
	// Master is the index of the bridge or bond it is put under.
	Master uint32 `json:"master,omitempty"`
	// State is "up" or "down", where that is asked for.
	State string `json:"state,omitempty"`
	MTU   uint32 `json:"mtu,omitempty"`
	// MAC is the link-layer address.
	MAC string `json:"mac,omitempty"`
	// NetNS is the namespace it is moved or made in, PeerNetNS that of the other end.
	NetNS     Namespace `json:"netns,omitzero"`
	PeerNetNS Namespace `json:"peer_netns,omitzero"`
}

// Doer implements Body.
func (r *Request) Doer() Process { return r.Process }
