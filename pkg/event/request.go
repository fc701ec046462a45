package event

// Request is a change or query of the kernel's network configuration by a thread: a netlink message, an ioctl of a
// socket, a table of iptables, or a command of bpf(2). Event.Time is when the system call returned.
type Request struct {
	Process Process `json:"process"`
	Thread  uint32  `json:"thread,omitempty"`
	// Start is when the system call began; all messages of one call share it.
	Start int64 `json:"start"`
	// Object is the object of the request, and Verb the action. Either is empty if the source does not know the
	// message.
	Object Object `json:"object,omitempty"`
	Verb   Verb   `json:"verb,omitempty"`
	// Protocol is "rtnetlink", "nf_tables", "iptables", "ioctl", "bpf", or another netlink family.
	Protocol string `json:"protocol"`
	// Name is the message's name in the kernel's headers ("RTM_NEWLINK", "SIOCBRADDIF"), for people. Object and Verb
	// have its meaning.
	Name string `json:"name"`
	// Exclusive is true if the request must fail for an existing object (NLM_F_EXCL).
	Exclusive bool `json:"exclusive,omitempty"`
	// Port and Sequence are those of the message and of the kernel's Answer.
	Port     uint32 `json:"port,omitempty"`
	Sequence uint32 `json:"sequence,omitempty"`
	// Count is the number of messages of this kind that were sent at once, if more than one. The fields below
	// describe the first.
	Count int `json:"count,omitempty"`
	// Error is the error of an ioctl, setsockopt or bpf, such as "EPERM". Netlink reports errors by Answer.
	Error string `json:"error,omitempty"`
	// NetNS is the namespace of the socket.
	NetNS     Namespace `json:"netns,omitzero"`
	Interface Interface `json:"interface,omitzero"`
	// Address is an interface's, with its prefix ("10.22.0.5/16"); a neighbor's; or the source that a routing rule
	// matches.
	Address string `json:"address,omitempty"`
	// Route is the destination of a route or routing rule, Gateway its next hop.
	Route   string `json:"route,omitempty"`
	Gateway string `json:"gateway,omitempty"`
	// Table and Chain are those of a packet filter rule. Table is also the name of an ipset, or the number of a
	// routing table other than main.
	Table string `json:"table,omitempty"`
	Chain string `json:"chain,omitempty"`
	// Program is the name of a BPF program or map (15 letters). Type is its kind ("sched_cls", "lru_hash"), or the
	// place of an attachment ("tcx_ingress"). Path is where an object is pinned, or the cgroup of an attached
	// program.
	Program string `json:"program,omitempty"`
	Type    string `json:"type,omitempty"`
	Path    string `json:"path,omitempty"`
	// Mentions are the sandboxes with a call in progress that it names; only for requests of an agent.
	Mentions []string `json:"mentions,omitempty"`
}

// Query reports whether the request changes nothing.
func (r *Request) Query() bool { return r.Verb == VerbQuery }

// Verb is the action of a request.
type Verb string

// The verbs.
const (
	VerbAdd    Verb = "add"
	VerbChange Verb = "change"
	VerbDelete Verb = "delete"
	VerbQuery  Verb = "query"
)

// Object is the kind of the object of a request.
type Object string

// The objects of routing and of interfaces, as ip(8), bridge(8) and tc(8) name them.
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

// The objects of packet filters and connection tracking, as nft(8), ipset(8) and conntrack(8) name them.
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

// The objects of BPF, as bpftool(8) names them; an attachment is a link, or of an older kind.
const (
	ObjectProgram    Object = "program"
	ObjectMap        Object = "map"
	ObjectPin        Object = "pin"
	ObjectAttachment Object = "attachment"
)

// Interface is a request's description of a network interface.
type Interface struct {
	Index uint32 `json:"index,omitempty"`
	Name  string `json:"name,omitempty"`
	// Kind is the kernel's word: "veth", "bridge".
	Kind string `json:"kind,omitempty"`
	// Peer is the other end of a veth pair.
	Peer string `json:"peer,omitempty"`
	// Master is the index of the bridge or bond that gets the interface.
	Master uint32 `json:"master,omitempty"`
	// State is "up" or "down" if the request sets it.
	State string `json:"state,omitempty"`
	MTU   uint32 `json:"mtu,omitempty"`
	// MAC is the link-layer address.
	MAC string `json:"mac,omitempty"`
	// NetNS is the namespace in which it is created or to which it is moved, PeerNetNS that of the other end.
	NetNS     Namespace `json:"netns,omitzero"`
	PeerNetNS Namespace `json:"peer_netns,omitzero"`
}

func (r *Request) Doer() Process { return r.Process }
