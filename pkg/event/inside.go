package event

// What happens inside a process of a plugin's tree: what it asks of the kernel and what
// it waits for. Where a type has a Start, Event.Time is when it was over.

// activityKinds are what processes ask of the kernel, and wait for, by the names of their kinds.
var activityKinds = map[string]Body{
	"detail":          &Detail{},
	"wait":            &Wait{},
	"request":         &Request{},
	"answer":          &Answer{},
	"link":            &Link{},
	"address":         &Address{},
	"setting":         &Setting{},
	"enter":           &Enter{},
	"connect":         &Connect{},
	"accept":          &Accept{},
	"close":           &Close{},
	"agent":           &Agent{},
	"configuration":   &Configuration{},
	"result":          &Result{},
	"firstconnection": &FirstConnection{},
	"mount":           &Mount{},
	"cut":             &Cut{},
}

// Detail says that from now on the inside of processes is seen, or is not.
type Detail struct {
	On bool `json:"on"`
}

// WaitKind is what kind of thing was waited for.
type WaitKind string

// The kinds of waits.
const (
	// WaitLock: a lock on a file (flock, fcntl).
	WaitLock WaitKind = "lock"
	// WaitMutex: a lock of the kernel's own, such as rtnl.
	WaitMutex WaitKind = "mutex"
	// WaitSleep: a timer, and it went off.
	WaitSleep WaitKind = "sleep"
	// WaitPoll: for whatever comes first, of files, threads or children, and something came.
	WaitPoll WaitKind = "poll"
	// WaitCall: in any other system call.
	WaitCall WaitKind = "system call"
)

// Wait says that a thread was blocked in the kernel. Those of some kinds are only told
// if they lasted; a lock on a file always is, since who has it matters to others.
type Wait struct {
	Process Process  `json:"process"`
	Thread  uint32   `json:"thread,omitempty"`
	Start   int64    `json:"start"`
	Kind    WaitKind `json:"kind"`
	// Name is the system call ("flock", "nanosleep"), or of a mutex its name ("rtnl").
	Name string `json:"name"`
	// Path is the lock's file.
	Path string `json:"path,omitempty"`
	// Error is why it ended in vain, as "EAGAIN"; empty if it did not.
	Error string `json:"error,omitempty"`
	// Released: it did not take the lock but gave it back.
	Released bool `json:"released,omitempty"`
	// Holder is who had the lock when the wait began; nil if nobody, or if it is not known.
	Holder *Actor `json:"holder,omitempty"`
}

// Actor is another process that takes part in an event: it has the lock, listens, or answers.
type Actor struct {
	// Process may be one that is not part of any plugin's tree.
	Process Process `json:"process,omitempty"`
	PID     uint32  `json:"pid,omitempty"`
	// Name is what the kernel calls its program (at most 15 bytes).
	Name string `json:"name,omitempty"`
	// Parent is the program of the process that started it.
	Parent string `json:"parent,omitempty"`
}

// Answer is what the kernel said to a Request: only refusals, since most are granted.
type Answer struct {
	Process  Process `json:"process"`
	Port     uint32  `json:"port,omitempty"`
	Sequence uint32  `json:"sequence"`
	// Error is its errno, as "EEXIST"; Message what the kernel says in words (extack).
	Error   string `json:"error"`
	Message string `json:"message,omitempty"`
}

// Link says what a process was told of an interface: which name its number stands for.
type Link struct {
	Process Process   `json:"process"`
	NetNS   Namespace `json:"netns,omitzero"`
	Index   uint32    `json:"index"`
	Name    string    `json:"name"`
}

// AddressState is how far duplicate address detection has come.
type AddressState string

// The states of an IPv6 address.
const (
	AddressTentative AddressState = "tentative"
	AddressReady     AddressState = "ready"
	AddressDuplicate AddressState = "duplicate"
)

// Address says what a process was told of an IPv6 address it asked for, when that
// changes: the kernel does not use an address before it is sure that nobody else does.
type Address struct {
	Process Process      `json:"process"`
	NetNS   Namespace    `json:"netns,omitzero"`
	Index   uint32       `json:"index"`
	Address string       `json:"address"`
	State   AddressState `json:"state"`
}

// Setting says that a process wrote a sysctl.
type Setting struct {
	Process Process `json:"process"`
	Thread  uint32  `json:"thread,omitempty"`
	Start   int64   `json:"start"`
	// Key is its path below /proc/sys: "net/ipv4/ip_forward".
	Key   string    `json:"key"`
	Value string    `json:"value"`
	Error string    `json:"error,omitempty"`
	NetNS Namespace `json:"netns,omitzero"`
	// Mentions: see Request.
	Mentions []string `json:"mentions,omitempty"`
}

// Enter says that a thread went into a network namespace (setns), or into a new one
// (unshare).
type Enter struct {
	Process Process   `json:"process"`
	Thread  uint32    `json:"thread,omitempty"`
	NetNS   Namespace `json:"netns"`
}

// Mount says that a process mounted a file system, moved or bound one, or took it away, which
// took long or failed.
type Mount struct {
	Process Process `json:"process"`
	Thread  uint32  `json:"thread,omitempty"`
	Start   int64   `json:"start"`
	// Name is the system call: "mount", "umount2", "move_mount".
	Name string `json:"name"`
	// Source is a path, a device, or what the file system takes for one; empty where there is
	// none, as of an unmount.
	Source string `json:"source,omitempty"`
	Target string `json:"target,omitempty"`
	// FSType is the type of the file system, where that is said: not of a bind mount.
	FSType string `json:"fstype,omitempty"`
	// Flags are those that tell one mount from another, as mount(8) calls them: "bind", "ro",
	// "detach".
	Flags []string `json:"flags,omitempty"`
	Error string   `json:"error,omitempty"`
}

// Connect says that a process called another one: it connected a socket, or could not.
type Connect struct {
	Process Process `json:"process"`
	Thread  uint32  `json:"thread,omitempty"`
	Start   int64   `json:"start"`
	// Socket is unique while the connection is up; the same in Accept and Close.
	Socket string `json:"socket"`
	// Network is "unix" or "tcp"; Address a path or "address:port".
	Network string `json:"network"`
	Address string `json:"address"`
	// Error is why there is no connection, as "ECONNREFUSED".
	Error string `json:"error,omitempty"`
	// Listener is who made the socket that listens there, if that is known: under socket
	// activation not who answers.
	Listener *Actor `json:"listener,omitempty"`
}

// Accept says who answered a Connect.
type Accept struct {
	Socket string `json:"socket"`
	Agent  Actor  `json:"agent"`
	// Listens: nobody was seen to accept, and the agent is who made the socket that listens.
	Listens bool `json:"listens,omitempty"`
}

// Close says that a process ended a connection.
type Close struct {
	Process Process `json:"process"`
	Socket  string  `json:"socket"`
}

// Agent is a sample of an agent: taken when it begins to be followed, from time to time while it
// is called, and when it is no longer followed.
type Agent struct {
	Process Process `json:"process"`
	PID     uint32  `json:"pid,omitempty"`
	Name    string  `json:"name,omitempty"`
	// Over: it is followed no more.
	Over bool `json:"over,omitempty"`
	// CPU is what it has consumed so far, in ns, its children not included. Exact to a
	// tick of 10 ms.
	CPU int64 `json:"cpu,omitempty"`
	// Channel is what its first thread waits in, as the kernel calls it; empty if it runs.
	Channel string `json:"channel,omitempty"`
}

// Configuration is what a plugin read from its standard input.
type Configuration struct {
	Process    Process `json:"process"`
	Network    string  `json:"network,omitempty"`
	Type       string  `json:"type,omitempty"`
	CNIVersion string  `json:"cni_version,omitempty"`
	IPAM       string  `json:"ipam,omitempty"`
	// Invalid says what is wrong with it; empty if nothing is.
	Invalid string `json:"invalid,omitempty"`
}

// Result is what a plugin wrote to its standard output.
type Result struct {
	Process    Process `json:"process"`
	CNIVersion string  `json:"cni_version,omitempty"`
	// IPs, Interfaces and Routes are bounded in number.
	IPs        []string `json:"ips,omitempty"`
	Interfaces []string `json:"interfaces,omitempty"`
	Routes     []string `json:"routes,omitempty"`
	// Code and Message are those of an error result (CNI specification, section 5).
	Code    uint32 `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
	// Invalid says what is wrong with it; empty if nothing is.
	Invalid string `json:"invalid,omitempty"`
}

// FirstConnection says that the first TCP connection of a namespace was established, in
// either direction.
type FirstConnection struct {
	NetNS  Namespace `json:"netns"`
	Local  string    `json:"local,omitempty"`
	Remote string    `json:"remote,omitempty"`
}

// Cut says that a process did more than is kept of it: bytes read or written, requests.
type Cut struct {
	Process Process `json:"process"`
	// What is a short fixed word: "bytes", "requests".
	What  string `json:"what"`
	Count uint64 `json:"count"`
}

func (*Detail) Doer() Process          { return "" }
func (b *Wait) Doer() Process          { return b.Process }
func (b *Answer) Doer() Process        { return b.Process }
func (b *Link) Doer() Process          { return b.Process }
func (b *Address) Doer() Process       { return b.Process }
func (b *Mount) Doer() Process         { return b.Process }
func (b *Setting) Doer() Process       { return b.Process }
func (b *Enter) Doer() Process         { return b.Process }
func (b *Connect) Doer() Process       { return b.Process }
func (b *Accept) Doer() Process        { return b.Agent.Process }
func (b *Close) Doer() Process         { return b.Process }
func (*Agent) Doer() Process           { return "" }
func (b *Configuration) Doer() Process { return b.Process }
func (b *Result) Doer() Process        { return b.Process }
func (*FirstConnection) Doer() Process { return "" }
func (b *Cut) Doer() Process           { return b.Process }
