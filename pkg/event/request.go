package event

// Request is a change or query of the kernel's network configuration: netlink message, ioctl, iptables table, or bpf(2)
// command.
type Request struct {
	Process Process `json:"process"`
	Thread  uint32  `json:"thread,omitempty"`
	// The start of the system call, which may have several messages.
	Start  int64  `json:"start"`
	Object Object `json:"object,omitempty"`
	Verb   Verb   `json:"verb,omitempty"`
	// "rtnetlink", "nf_tables", "iptables", "ioctl", "bpf", or another netlink family.
	Protocol string `json:"protocol"`
	// From the kernel's headers: "RTM_NEWLINK".
	Name string `json:"name"`
	// It must fail for an existing object (NLM_F_EXCL).
	Exclusive bool   `json:"exclusive,omitempty"`
	Port      uint32 `json:"port,omitempty"`
	Sequence  uint32 `json:"sequence,omitempty"`
	// The number of messages, if several; the fields below describe the first.
	Count int `json:"count,omitempty"`
	// Netlink reports errors as Answers.
	Error     string    `json:"error,omitempty"`
	NetNS     Namespace `json:"netns,omitzero"`
	Interface Interface `json:"interface,omitzero"`
	// An interface's (with prefix) or neighbor's address, or a routing rule's source.
	Address string `json:"address,omitempty"`
	// Destination of a route or rule, and its next hop.
	Route   string `json:"route,omitempty"`
	Gateway string `json:"gateway,omitempty"`
	// A packet filter rule's. Table is also an ipset, or a routing table except main.
	Table string `json:"table,omitempty"`
	Chain string `json:"chain,omitempty"`
	// Program is a BPF program or map (15 letters), Type its kind ("lru_hash") or the place of an attachment
	// ("tcx_ingress"), Path the pin, or the cgroup of the attachment.
	Program string `json:"program,omitempty"`
	Type    string `json:"type,omitempty"`
	Path    string `json:"path,omitempty"`
	// As in Exec.
	Mentions []string `json:"mentions,omitempty"`
}

// Query reports whether the request changes nothing.
func (r *Request) Query() bool { return r.Verb == VerbQuery }

// Verb is a request's action.
type Verb string

// Verbs.
const (
	VerbAdd    Verb = "add"
	VerbChange Verb = "change"
	VerbDelete Verb = "delete"
	VerbQuery  Verb = "query"
)

// Object is a request's object.
type Object string

// Objects of routing and interfaces, as in ip(8), bridge(8) and tc(8).
const (
	ObjectLink     Object = "link"
	ObjectPort     Object = "port" // of a bridge or bond
	ObjectAddress  Object = "address"
	ObjectRoute    Object = "route"
	ObjectNextHop  Object = "nexthop"
	ObjectNeighbor Object = "neighbor"
	ObjectRule     Object = "rule" // of routing or a packet filter
	ObjectNetNS    Object = "netns"
	ObjectVLAN     Object = "vlan"
	ObjectMDB      Object = "mdb"
	ObjectQdisc    Object = "qdisc"
	ObjectClass    Object = "class"
	ObjectFilter   Object = "filter"
	ObjectAction   Object = "action"
)

// Objects of packet filters and connection tracking, as in nft(8), ipset(8) and conntrack(8).
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

// Objects of BPF, as in bpftool(8).
const (
	ObjectProgram    Object = "program"
	ObjectMap        Object = "map"
	ObjectPin        Object = "pin"
	ObjectAttachment Object = "attachment"
)

// Interface is a network interface in a request.
type Interface struct {
	Index uint32 `json:"index,omitempty"`
	Name  string `json:"name,omitempty"`
	Kind  string `json:"kind,omitempty"`
	Peer  string `json:"peer,omitempty"`
	// Index of its bridge or bond.
	Master uint32 `json:"master,omitempty"`
	State  string `json:"state,omitempty"`
	MTU    uint32 `json:"mtu,omitempty"`
	MAC    string `json:"mac,omitempty"`
	// Where it is created or moves to, and where its peer is.
	NetNS     Namespace `json:"netns,omitzero"`
	PeerNetNS Namespace `json:"peer_netns,omitzero"`
}

func (r *Request) Doer() Process { return r.Process }
