package event

// Activities: Start is in monotonic ns, Event.Time the end. Error is a name ("EEXIST") or empty.

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
	"exchange":        &Exchange{},
	"agent":           &Agent{},
	"configuration":   &Configuration{},
	"result":          &Result{},
	"firstconnection": &FirstConnection{},
	"mount":           &Mount{},
	"questions":       &Questions{},
	"cut":             &Cut{},
	"missing":         &Missing{},
	"lockfile":        &LockFile{},
}

// Detail reports that system-call tracing was switched.
type Detail struct {
	On bool `json:"on"`
}

// WaitKind is the kind of a Wait.
type WaitKind string

// Kinds of waits.
const (
	WaitLock  WaitKind = "lock"  // flock, fcntl
	WaitMutex WaitKind = "mutex" // a kernel lock, such as rtnl
	WaitSleep WaitKind = "sleep"
	WaitPoll  WaitKind = "poll" // for the first of several files, threads or children
	WaitCall  WaitKind = "system call"
)

// Wait reports that a thread was blocked for 1 ms or longer, by a kernel lock for 0.1 ms or longer, or by a file lock
// for any time.
type Wait struct {
	Process Process `json:"process"`
	Thread  uint32  `json:"thread,omitempty"`
	Start   int64   `json:"start"`
	// The last sighting, if the end was noticed late; 0: the event's time.
	End  int64    `json:"end,omitempty"`
	Kind WaitKind `json:"kind"`
	// The system call ("flock"), or the kernel lock ("rtnl").
	Name     string `json:"name"`
	Path     string `json:"path,omitempty"`
	Error    string `json:"error,omitempty"`
	Released bool   `json:"released,omitempty"`
	// It held the lock at Start; nil if unknown.
	Holder *Actor `json:"holder,omitempty"`
}

// Until returns the end of a wait reported at now.
func (w *Wait) Until(now int64) int64 {
	if w.End == 0 {
		return now
	}
	return min(max(w.Start, w.End), now)
}

// Actor is another process of an event: a lock's holder, a listener, or an agent.
type Actor struct {
	Process Process `json:"process,omitempty"`
	PID     uint32  `json:"pid,omitempty"`
	// The kernel's name of the program, up to 15 bytes (TASK_COMM_LEN).
	Name   string `json:"name,omitempty"`
	Parent string `json:"parent,omitempty"`
	// Set if a file lock's holder was stopped or frozen for most of the wait. By is as in Agent.
	State AgentState `json:"state,omitempty"`
	By    string     `json:"by,omitempty"`
}

// Halted reports whether the process is stopped or frozen.
func (a *Actor) Halted() bool { return a != nil && a.State.Halted() }

// Answer is the kernel's refusal of the Request with the same Port and Sequence.
type Answer struct {
	Process  Process `json:"process"`
	Port     uint32  `json:"port,omitempty"`
	Sequence uint32  `json:"sequence"`
	Error    string  `json:"error"`
	Message  string  `json:"message,omitempty"`
}

// Link reports an interface's name.
type Link struct {
	Process Process   `json:"process"`
	NetNS   Namespace `json:"netns,omitzero"`
	Index   uint32    `json:"index"`
	Name    string    `json:"name"`
}

// AddressState is the state of duplicate address detection.
type AddressState string

// States of an IPv6 address.
const (
	AddressTentative AddressState = "tentative"
	AddressReady     AddressState = "ready"
	AddressDuplicate AddressState = "duplicate"
)

// Address reports an IPv6 address's state; it is unusable before duplicate address detection ends.
type Address struct {
	Process Process      `json:"process"`
	NetNS   Namespace    `json:"netns,omitzero"`
	Index   uint32       `json:"index"`
	Address string       `json:"address"`
	State   AddressState `json:"state"`
}

// Setting reports a written sysctl.
type Setting struct {
	Process Process `json:"process"`
	Thread  uint32  `json:"thread,omitempty"`
	Start   int64   `json:"start"`
	// Key is below /proc/sys: "net/ipv4/ip_forward".
	Key      string    `json:"key"`
	Value    string    `json:"value"`
	Error    string    `json:"error,omitempty"`
	NetNS    Namespace `json:"netns,omitzero"`
	Mentions []string  `json:"mentions,omitempty"`
}

// Enter reports that a thread entered a network namespace.
type Enter struct {
	Process Process   `json:"process"`
	Thread  uint32    `json:"thread,omitempty"`
	NetNS   Namespace `json:"netns"`
}

// Mount reports a mount, bind, move or unmount that lasted 1 ms or longer, or failed.
type Mount struct {
	Process Process `json:"process"`
	Thread  uint32  `json:"thread,omitempty"`
	Start   int64   `json:"start"`
	Name    string  `json:"name"`
	Source  string  `json:"source,omitempty"`
	Target  string  `json:"target,omitempty"`
	FSType  string  `json:"fstype,omitempty"`
	// Without those that only tune the file system.
	Flags []string `json:"flags,omitempty"`
	Error string   `json:"error,omitempty"`
}

// Connect reports a connection attempt.
type Connect struct {
	Process Process `json:"process"`
	Thread  uint32  `json:"thread,omitempty"`
	Start   int64   `json:"start"`
	// Socket identifies the connection in Accept and Close.
	Socket string `json:"socket"`
	// "unix" or "tcp", and a path or "address:port".
	Network string `json:"network"`
	Address string `json:"address"`
	Error   string `json:"error,omitempty"`
	// Listener created the listening socket; with socket activation another process answers.
	Listener *Actor `json:"listener,omitempty"`
}

// Accept reports the agent that answered a Connect.
type Accept struct {
	Socket string `json:"socket"`
	Agent  Actor  `json:"agent"`
	// No accept was seen; Agent created the listening socket.
	Listens bool `json:"listens,omitempty"`
	// The answering thread's span, in a second Accept.
	Thread *ThreadSpan `json:"thread,omitempty"`
}

// Close reports the end of a connection.
type Close struct {
	Process Process `json:"process"`
	Socket  string  `json:"socket"`
}

// Exchange reports that an agent of a call, or a process it waits for, wrote to a stream and read from it 1 ms or
// more later.
type Exchange struct {
	Process Process `json:"process"`
	Thread  uint32  `json:"thread,omitempty"`
	// The first write since the last read; if Unasked the last read, or 0 if unknown.
	Start int64 `json:"start,omitempty"`
	// The last write after Start, or 0: on a shared stream an unanswered request may precede the awaited one.
	Last    int64  `json:"last,omitempty"`
	Socket  string `json:"socket"`
	Network string `json:"network,omitempty"`
	Address string `json:"address,omitempty"`
	Peer    *Actor `json:"peer,omitempty"`
	// The peer wrote a notification or a late answer.
	Unasked bool `json:"unasked,omitempty"`
	// Pending is repeated until the process reads. With Unasked, the process wrote for a call before its
	// last read, and may wait for more. With Start 0, no request was seen: the peer is stopped, and shares a stream with
	// the awaited process, which may therefore not answer. An Unasked exchange ends the latter.
	Pending bool `json:"pending,omitempty"`
	// Why it will never read: "EPIPE", "EOF" (from the peer), "closed", "unfollowed" (it no longer waits).
	Error string `json:"error,omitempty"`
}

// AgentState is the state of an agent's threads.
type AgentState string

// Halted reports whether the process is stopped or frozen.
func (s AgentState) Halted() bool { return s == AgentStopped || s == AgentFrozen }

// States of an agent, by precedence among its threads.
const (
	AgentStopped         AgentState = "stopped"         // by a signal or debugger
	AgentFrozen          AgentState = "frozen"          // by the freezer
	AgentUninterruptible AgentState = "uninterruptible" // no signal ends it (D)
	AgentRunning         AgentState = "running"         // or runnable
	AgentWaiting         AgentState = "waiting"         // in a function in which idle threads do not wait
	AgentIdle            AgentState = "idle"            // all threads wait for work or each other
)

// Agent is a sample of an agent, or of a process that it waits for: at the start and end of following, and during a
// call. With Since it is a sample of a plugin's process that was stopped, frozen or resumed.
type Agent struct {
	Process Process `json:"process"`
	PID     uint32  `json:"pid,omitempty"`
	Name    string  `json:"name,omitempty"`
	// Its connections are invisible, so its work is attributed by mentions and times.
	Hidden bool `json:"hidden,omitempty"`
	Over   bool `json:"over,omitempty"`
	// In ns, in steps of 10 ms, without children.
	CPU   int64      `json:"cpu,omitempty"`
	State AgentState `json:"state,omitempty"`
	// The kernel function of a waiting or uninterruptible thread; without State, of the first.
	Channel string `json:"channel,omitempty"`
	// What stopped or froze it: "gdb (pid 812)", or the freezer's file.
	By string `json:"by,omitempty"`
	// The previous sample of a plugin's process.
	Since int64 `json:"since,omitempty"`
	// "OOM" or empty.
	Killed string `json:"killed,omitempty"`
	// Names (up to 15 letters) of programs that it ran while it was not followed.
	Programs []string `json:"programs,omitempty"`
	// Where it was for most of an ended connection, or of a plugin's time. Shared: unconfirmed. Sought: Stack follows.
	Socket string  `json:"socket,omitempty"`
	Stack  []Frame `json:"stack,omitempty"`
	Shared bool    `json:"shared,omitempty"`
	Sought bool    `json:"sought,omitempty"`
}

// Configuration is the network configuration on a plugin's standard input.
type Configuration struct {
	Process    Process `json:"process"`
	Network    string  `json:"network,omitempty"`
	Type       string  `json:"type,omitempty"`
	CNIVersion string  `json:"cni_version,omitempty"`
	Master     string  `json:"master,omitempty"`
	IPAM       string  `json:"ipam,omitempty"`
	DataDir    string  `json:"data_dir,omitempty"` // of leases
	Invalid    string  `json:"invalid,omitempty"`
}

// Result is the result or error on a plugin's standard output.
type Result struct {
	Process    Process  `json:"process"`
	CNIVersion string   `json:"cni_version,omitempty"`
	IPs        []string `json:"ips,omitempty"`
	Interfaces []string `json:"interfaces,omitempty"`
	Routes     []string `json:"routes,omitempty"`
	// An error's (CNI specification, section 5).
	Code    uint32 `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
	Invalid string `json:"invalid,omitempty"`
	// Stderr has the last words of a plugin that failed without a Message.
	Stderr string `json:"stderr,omitempty"`
}

// FirstConnection is a namespace's first TCP connection, in either direction.
type FirstConnection struct {
	NetNS  Namespace `json:"netns"`
	Local  string    `json:"local,omitempty"`
	Remote string    `json:"remote,omitempty"`
}

// Questions sums up a process's short queries when its image ends; Took is in ns.
type Questions struct {
	Process Process `json:"process"`
	Count   uint64  `json:"count"`
	Took    int64   `json:"took"`
}

// Cut reports that a process exceeded a limit.
type Cut struct {
	Process Process `json:"process"`
	// "bytes", "requests" or "inputs".
	What  string `json:"what"`
	Count uint64 `json:"count"`
}

// Missing reports that a thread tried a path repeatedly, with the same error (ENOENT; EEXIST for a lock file).
type Missing struct {
	Process Process `json:"process"`
	// The plugin's PID, if the process belongs to one.
	PID    uint32 `json:"pid,omitempty"`
	Thread uint32 `json:"thread,omitempty"`
	Start  int64  `json:"start"`
	Name   string `json:"name,omitempty"`
	Path   string `json:"path"`
	Error  string `json:"error"`
	// The number of tries; for EEXIST, by all processes of the run.
	Count uint64 `json:"count"`
}

// LockFile reports the state of a polled lock file.
type LockFile struct {
	Path string `json:"path"`
	// Last change, in ns since 1970.
	Written int64 `json:"written"`
	// The process whose PID is in the file: without a name if it exited, nil without a PID.
	Maker *Actor `json:"maker,omitempty"`
	// Maker exited, or is younger than the file.
	Gone bool `json:"gone,omitempty"`
}

func (*Detail) Doer() Process          { return "" }
func (w *Wait) Doer() Process          { return w.Process }
func (b *Answer) Doer() Process        { return b.Process }
func (b *Link) Doer() Process          { return b.Process }
func (b *Address) Doer() Process       { return b.Process }
func (b *Mount) Doer() Process         { return b.Process }
func (b *Setting) Doer() Process       { return b.Process }
func (b *Enter) Doer() Process         { return b.Process }
func (b *Connect) Doer() Process       { return b.Process }
func (b *Accept) Doer() Process        { return b.Agent.Process }
func (b *Close) Doer() Process         { return b.Process }
func (b *Exchange) Doer() Process      { return b.Process }
func (*Agent) Doer() Process           { return "" }
func (b *Configuration) Doer() Process { return b.Process }
func (b *Result) Doer() Process        { return b.Process }
func (*FirstConnection) Doer() Process { return "" }
func (b *Questions) Doer() Process     { return b.Process }
func (b *Cut) Doer() Process           { return b.Process }
func (b *Missing) Doer() Process       { return b.Process }
func (*LockFile) Doer() Process        { return "" }
