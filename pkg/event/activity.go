package event

// These events, and Request, are activities of plugins' processes and agents. Start is in monotonic ns, the event's
// time is the end. Error is a name ("EEXIST"), empty on success.

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
	WaitLock  WaitKind = "lock"  // file lock (flock, fcntl)
	WaitMutex WaitKind = "mutex" // kernel lock, such as rtnl
	WaitSleep WaitKind = "sleep" // timer that expired
	WaitPoll  WaitKind = "poll"  // the first of several files, threads or children
	WaitCall  WaitKind = "system call"
)

// Wait reports a blocked thread: 1 ms or longer, by a kernel lock 0.1 ms, by a file lock any time.
type Wait struct {
	Process Process `json:"process"`
	Thread  uint32  `json:"thread,omitempty"`
	Start   int64   `json:"start"`
	// End is the last sighting if the end was noticed late; 0 is the event's time.
	End  int64    `json:"end,omitempty"`
	Kind WaitKind `json:"kind"`
	// Name is the system call ("flock"), or the kernel lock ("rtnl").
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

// Actor is another process: a holder, a listener, or an agent.
type Actor struct {
	Process Process `json:"process,omitempty"`
	PID     uint32  `json:"pid,omitempty"`
	// Up to 15 bytes (TASK_COMM_LEN).
	Name   string `json:"name,omitempty"`
	Parent string `json:"parent,omitempty"`
	// State is AgentStopped or AgentFrozen if a file lock's holder was so for most of the wait. By is as in Agent.
	State AgentState `json:"state,omitempty"`
	By    string     `json:"by,omitempty"`
}

// Halted reports whether the actor was stopped or frozen.
func (a *Actor) Halted() bool { return a != nil && a.State.Halted() }

// Answer is the kernel's refusal of the Request with this Port and Sequence.
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

// The states of an IPv6 address.
const (
	AddressTentative AddressState = "tentative"
	AddressReady     AddressState = "ready"
	AddressDuplicate AddressState = "duplicate"
)

// Address reports an IPv6 address's state. The kernel does not use the address before duplicate address detection ends.
type Address struct {
	Process Process      `json:"process"`
	NetNS   Namespace    `json:"netns,omitzero"`
	Index   uint32       `json:"index"`
	Address string       `json:"address"`
	State   AddressState `json:"state"`
}

// Setting reports a written sysctl.
type Setting struct {
	Process  Process   `json:"process"`
	Thread   uint32    `json:"thread,omitempty"`
	Start    int64     `json:"start"`
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

// Mount reports a mount, bind, move or unmount of 1 ms or longer, or a failed one.
type Mount struct {
	Process Process `json:"process"`
	Thread  uint32  `json:"thread,omitempty"`
	Start   int64   `json:"start"`
	Name    string  `json:"name"`
	Source  string  `json:"source,omitempty"`
	Target  string  `json:"target,omitempty"`
	FSType  string  `json:"fstype,omitempty"`
	// As in mount(8) and umount(8), without those that only tune.
	Flags []string `json:"flags,omitempty"`
	Error string   `json:"error,omitempty"`
}

// Connect reports a connection, or an attempt.
type Connect struct {
	Process Process `json:"process"`
	Thread  uint32  `json:"thread,omitempty"`
	Start   int64   `json:"start"`
	// Socket identifies the connection in Accept and Close.
	Socket string `json:"socket"`
	// Network is "unix" or "tcp", Address a path or "address:port".
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
	// No accept was seen, so Agent is the listener.
	Listens bool `json:"listens,omitempty"`
}

// Close reports the end of a connection.
type Close struct {
	Process Process `json:"process"`
	Socket  string  `json:"socket"`
}

// Exchange reports that an agent of a call, or a process that it waits for, wrote to a stream and read from it 1 ms or
// more later.
type Exchange struct {
	Process Process `json:"process"`
	// The reading thread; 0 until it read.
	Thread uint32 `json:"thread,omitempty"`
	// Start is the first write since the last read; for Unasked the last read, 0 if unknown.
	Start int64 `json:"start,omitempty"`
	// Last is the last write after Start, or 0: an unanswered request may precede the awaited one.
	Last    int64  `json:"last,omitempty"`
	Socket  string `json:"socket"`
	Network string `json:"network,omitempty"`
	Address string `json:"address,omitempty"`
	// Peer is the other end, if on this machine.
	Peer *Actor `json:"peer,omitempty"`
	// Unasked: the peer wrote without a new request (a notification or a late answer).
	Unasked bool `json:"unasked,omitempty"`
	// Pending is repeated until the process reads. With Unasked, the process wrote for a call before its last read and
	// may wait for more. With Start 0, no request was seen: the peer is stopped and shares a stream with the awaited
	// process, which may therefore not answer; an Unasked exchange ends this.
	Pending bool `json:"pending,omitempty"`
	// Error is why the process will never read: "EPIPE", "EOF" (the peer hung up), "closed", "unfollowed" (it no longer
	// waits).
	Error string `json:"error,omitempty"`
}

// AgentState is the state of an agent's threads.
type AgentState string

// Halted reports whether the process is stopped or frozen.
func (s AgentState) Halted() bool { return s == AgentStopped || s == AgentFrozen }

// States of an agent, in order of precedence among its threads.
const (
	AgentStopped         AgentState = "stopped"         // by a signal or debugger
	AgentFrozen          AgentState = "frozen"          // by its cgroup's freezer
	AgentUninterruptible AgentState = "uninterruptible" // in a kernel wait that no signal ends (D)
	AgentRunning         AgentState = "running"         // or runnable
	AgentWaiting         AgentState = "waiting"         // in a kernel function that is not for idle threads
	AgentIdle            AgentState = "idle"            // all threads wait for work or each other
)

// Agent is a sample of an agent, or of a process that it waits for: when following starts and ends, and during a call.
// With Since it is one of a plugin's stopped, frozen or resumed process.
type Agent struct {
	Process Process `json:"process"`
	PID     uint32  `json:"pid,omitempty"`
	Name    string  `json:"name,omitempty"`
	// Hidden: its connections are invisible, so mentions and times attribute its work.
	Hidden bool `json:"hidden,omitempty"`
	Over   bool `json:"over,omitempty"`
	// ns, to 10 ms, without children.
	CPU   int64      `json:"cpu,omitempty"`
	State AgentState `json:"state,omitempty"`
	// Channel is the kernel function of a waiting or uninterruptible thread; without State, of the first thread.
	Channel string `json:"channel,omitempty"`
	// By is what stopped it ("gdb (pid 812)"), or the file that freezes its cgroup.
	By    string `json:"by,omitempty"`
	Since int64  `json:"since,omitempty"`
	// "OOM", or empty.
	Killed string `json:"killed,omitempty"`
	// Programs (names of up to 15 letters) ran before it was followed.
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
	// Code and Message are as in the CNI specification, section 5.
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

// Questions sums up a process's short queries, in ns, at the end of its image.
type Questions struct {
	Process Process `json:"process"`
	Count   uint64  `json:"count"`
	Took    int64   `json:"took"`
}

// Cut reports that a process exceeded a limit.
type Cut struct {
	Process Process `json:"process"`
	// "bytes" of its input or output, or "requests".
	What  string `json:"what"`
	Count uint64 `json:"count"`
}

// Missing reports repeated tries of a path with the same error: ENOENT, or EEXIST for a lock file. It is repeated up to
// ten times a second.
type Missing struct {
	Process Process `json:"process"`
	Thread  uint32  `json:"thread,omitempty"`
	// Start is the first observed try, the event's time the last.
	Start int64  `json:"start"`
	Name  string `json:"name,omitempty"`
	Path  string `json:"path"`
	Error string `json:"error"`
	// Count is of observed tries; for EEXIST, by all processes of the plugin's run.
	Count uint64 `json:"count"`
}

// LockFile reports the state of a lock file that a process polls (Missing, EEXIST).
type LockFile struct {
	Path string `json:"path"`
	// The last change, in wall ns.
	Written int64 `json:"written"`
	// Maker is the process whose PID the file contains, without a name if gone; nil if there is no PID.
	Maker *Actor `json:"maker,omitempty"`
	// Gone: that process exited, or began after the file was written.
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
