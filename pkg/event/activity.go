package event

// These events, and Request, are activities of plugins' processes and agents. Start is in monotonic ns, Event.Time is
// the end. Error is an error's name ("EEXIST"), empty on success.

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

// Detail reports that system-call tracing, the origin of these events, was switched.
type Detail struct {
	On bool `json:"on"`
}

// WaitKind is the kind of a Wait.
type WaitKind string

// Kinds of waits.
const (
	WaitLock  WaitKind = "lock"  // file lock (flock, fcntl)
	WaitMutex WaitKind = "mutex" // kernel lock, such as rtnl
	WaitSleep WaitKind = "sleep" // a timer that expired
	WaitPoll  WaitKind = "poll"  // for the first of several files, threads or children
	WaitCall  WaitKind = "system call"
)

// Wait reports that a thread was blocked for 1 ms or longer, by a kernel lock for 0.1 ms, by a file lock for any time.
type Wait struct {
	Process Process `json:"process"`
	Thread  uint32  `json:"thread,omitempty"`
	Start   int64   `json:"start"`
	// End is the last sighting if the end was noticed late; 0 is the event's time.
	End  int64    `json:"end,omitempty"`
	Kind WaitKind `json:"kind"`
	// Name is the system call ("flock", "nanosleep"), or the kernel lock ("rtnl").
	Name     string `json:"name"`
	Path     string `json:"path,omitempty"`
	Error    string `json:"error,omitempty"`
	Released bool   `json:"released,omitempty"`
	Holder   *Actor `json:"holder,omitempty"`
}

// Until returns the end of a wait reported at now.
func (w *Wait) Until(now int64) int64 {
	if w.End == 0 {
		return now
	}
	return min(max(w.Start, w.End), now)
}

// Actor is another process of an event: a holder, a listener, or an agent.
type Actor struct {
	Process Process `json:"process,omitempty"`
	PID     uint32  `json:"pid,omitempty"`
	// Name is the kernel's, up to 15 bytes (TASK_COMM_LEN).
	Name   string `json:"name,omitempty"`
	Parent string `json:"parent,omitempty"`
	// State is AgentStopped or AgentFrozen if a file lock's holder was so for most of the wait. By is as in Agent.
	State AgentState `json:"state,omitempty"`
	By    string     `json:"by,omitempty"`
}

// Halted reports whether the actor was stopped or frozen.
func (a *Actor) Halted() bool { return a != nil && a.State.Halted() }

// Answer is the kernel's refusal of the Request with the same Port and Sequence.
type Answer struct {
	Process  Process `json:"process"`
	Port     uint32  `json:"port,omitempty"`
	Sequence uint32  `json:"sequence"`
	Error    string  `json:"error"`
	Message  string  `json:"message,omitempty"`
}

// Link reports an interface's name, from the kernel's answer.
type Link struct {
	Process Process   `json:"process"`
	NetNS   Namespace `json:"netns,omitzero"`
	Index   uint32    `json:"index"`
	Name    string    `json:"name"`
}

// AddressState is the state of duplicate address detection.
type AddressState string

// The states of an IPv6 address.
const (
	AddressTentative AddressState = "tentative"
	AddressReady     AddressState = "ready"
	AddressDuplicate AddressState = "duplicate"
)

// Address reports an IPv6 address's state, from the kernel's answer. The kernel uses it only after duplicate address
// detection.
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
	// Key is such as "net/ipv4/ip_forward".
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
	// Flags are as in mount(8) and umount(8), without those that only tune.
	Flags []string `json:"flags,omitempty"`
	Error string   `json:"error,omitempty"`
}

// Connect reports a connection, or an attempt.
type Connect struct {
	Process Process `json:"process"`
	Thread  uint32  `json:"thread,omitempty"`
	Start   int64   `json:"start"`
	// Socket identifies the open connection in Accept and Close.
	Socket string `json:"socket"`
	// Network is "unix" or "tcp", Address a path or "address:port".
	Network string `json:"network"`
	Address string `json:"address"`
	Error   string `json:"error,omitempty"`
	// Listener created the listening socket, if known. With socket activation another process answers.
	Listener *Actor `json:"listener,omitempty"`
}

// Accept reports which agent answered the Connect of a socket.
type Accept struct {
	Socket string `json:"socket"`
	Agent  Actor  `json:"agent"`
	// Listens means that no accept was seen, so Agent is the listener.
	Listens bool `json:"listens,omitempty"`
}

// Close reports the end of a connection.
type Close struct {
	Process Process `json:"process"`
	Socket  string  `json:"socket"`
}

// Exchange reports that an agent of a call, or a process that it waits for, wrote to a stream, usually an old one, and
// read from it 1 ms or more later.
type Exchange struct {
	Process Process `json:"process"`
	// Thread is the reading thread; 0 until it read.
	Thread uint32 `json:"thread,omitempty"`
	// Start is the first write since the last read; for Unasked the last read, or 0 if unknown.
	Start int64 `json:"start,omitempty"`
	// Last is the last write after Start, or 0: an unanswered request may precede the awaited one on a stream.
	Last   int64  `json:"last,omitempty"`
	Socket string `json:"socket"`
	// Network and Address are of the other end.
	Network string `json:"network,omitempty"`
	Address string `json:"address,omitempty"`
	// Peer is the other end, if on this machine.
	Peer *Actor `json:"peer,omitempty"`
	// Unasked means that the peer wrote without a new request: a notification, or a late answer.
	Unasked bool `json:"unasked,omitempty"`
	// Pending is repeated until the process reads. With Unasked the process wrote for a call before its last read, and may
	// wait for more. With Start 0 no request was seen: the peer is stopped and shares a stream with the awaited process,
	// which may therefore not answer. An Unasked exchange ends the latter.
	Pending bool `json:"pending,omitempty"`
	// Error is why the process will never read: "EPIPE"; "EOF" if the peer hung up; "closed"; "unfollowed" if it no
	// longer waits.
	Error string `json:"error,omitempty"`
}

// AgentState is the state of an agent's threads.
type AgentState string

// Halted reports whether the process does nothing until it is resumed.
func (s AgentState) Halted() bool { return s == AgentStopped || s == AgentFrozen }

// States of an agent, in order of precedence among its threads.
const (
	AgentStopped         AgentState = "stopped"         // by a signal or a debugger
	AgentFrozen          AgentState = "frozen"          // by its cgroup's freezer
	AgentUninterruptible AgentState = "uninterruptible" // in a kernel wait that no signal ends (D)
	AgentRunning         AgentState = "running"         // on a CPU, or runnable
	AgentWaiting         AgentState = "waiting"         // in a kernel function in which idle threads do not wait
	AgentIdle            AgentState = "idle"            // all threads wait for work or each other
)

// Agent is a sample of an agent, or of a process that it waits for: at the start and end of following, and during a
// call. With Since it is a sample of a plugin's stopped, frozen or resumed process.
type Agent struct {
	Process Process `json:"process"`
	PID     uint32  `json:"pid,omitempty"`
	Name    string  `json:"name,omitempty"`
	// Hidden means that its connections are invisible, so mentions and times attribute its work.
	Hidden bool `json:"hidden,omitempty"`
	Over   bool `json:"over,omitempty"`
	// CPU is in ns, to 10 ms, without children.
	CPU   int64      `json:"cpu,omitempty"`
	State AgentState `json:"state,omitempty"`
	// Channel is the kernel function of a waiting or uninterruptible thread; without State, of the first thread.
	Channel string `json:"channel,omitempty"`
	// By is what stopped it, such as the debugger ("gdb (pid 812)"), or the file that freezes its cgroup.
	By    string `json:"by,omitempty"`
	Since int64  `json:"since,omitempty"`
	// Killed is "OOM" if the kernel killed it because memory ran out.
	Killed string `json:"killed,omitempty"`
	// Programs are names (up to 15 letters) of programs that it ran before it was followed.
	Programs []string `json:"programs,omitempty"`
}

// Configuration is a plugin's standard input.
type Configuration struct {
	Process    Process `json:"process"`
	Network    string  `json:"network,omitempty"`
	Type       string  `json:"type,omitempty"`
	CNIVersion string  `json:"cni_version,omitempty"`
	IPAM       string  `json:"ipam,omitempty"`
	Invalid    string  `json:"invalid,omitempty"`
}

// Result is a plugin's standard output.
type Result struct {
	Process    Process  `json:"process"`
	CNIVersion string   `json:"cni_version,omitempty"`
	IPs        []string `json:"ips,omitempty"`
	Interfaces []string `json:"interfaces,omitempty"`
	Routes     []string `json:"routes,omitempty"`
	// Code and Message are an error's (CNI specification, section 5).
	Code    uint32 `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
	Invalid string `json:"invalid,omitempty"`
}

// FirstConnection is the first TCP connection of a network namespace, in either direction.
type FirstConnection struct {
	NetNS  Namespace `json:"netns"`
	Local  string    `json:"local,omitempty"`
	Remote string    `json:"remote,omitempty"`
}

// Questions sums up a process's short queries at the end of its image, in ns.
type Questions struct {
	Process Process `json:"process"`
	Count   uint64  `json:"count"`
	Took    int64   `json:"took"`
}

// Cut reports that a process exceeded a limit of the source.
type Cut struct {
	Process Process `json:"process"`
	// What is "bytes" of its input or output, or "requests".
	What  string `json:"what"`
	Count uint64 `json:"count"`
}

// Missing reports that a process tried a path again and again and got the same error: ENOENT for a file that is not there,
// EEXIST for a lock file that is. It is repeated, up to ten times a second, while the process goes on.
type Missing struct {
	Process Process `json:"process"`
	Thread  uint32  `json:"thread,omitempty"`
	// Start is the first try that was seen, the event's time the last.
	Start int64 `json:"start"`
	// Name is the system call.
	Name  string `json:"name,omitempty"`
	Path  string `json:"path"`
	Error string `json:"error"`
	// Count is how many tries were seen. For EEXIST they are those of all processes of the plugin's run.
	Count uint64 `json:"count"`
}

// LockFile reports what a look at a lock file found, for which a process polled (Missing, EEXIST).
type LockFile struct {
	Path string `json:"path"`
	// Written is the file's last change, in wall ns.
	Written int64 `json:"written"`
	// Maker is the process whose number the file contains, without a name if it is gone; nil if it contains none.
	Maker *Actor `json:"maker,omitempty"`
	// Gone is true if that process exited, or began after the file was written.
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
