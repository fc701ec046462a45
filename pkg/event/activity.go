package event

// The events of this file, and Request, report what plugins' processes and agents ask of the kernel and wait for. A
// Start is when it began, in monotonic ns; Event.Time is when it ended. An Error is the name of an error number
// ("EEXIST"), empty on success.

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
}

// Detail reports that system-call tracing was switched on or off: the source sees the events of this file only while
// it is on.
type Detail struct {
	On bool `json:"on"`
}

// WaitKind is the kind of a Wait.
type WaitKind string

// The kinds of waits.
const (
	// WaitLock is a file lock (flock, fcntl).
	WaitLock WaitKind = "lock"
	// WaitMutex is a kernel lock, such as rtnl.
	WaitMutex WaitKind = "mutex"
	// WaitSleep is a timer that expired.
	WaitSleep WaitKind = "sleep"
	// WaitPoll waited for the first of several files, threads or children to become ready.
	WaitPoll WaitKind = "poll"
	// WaitCall is any other system call.
	WaitCall WaitKind = "system call"
)

// Wait reports that a thread was blocked in the kernel for 1 ms or longer (0.1 ms for a kernel lock). A file lock is
// reported for any duration, because other processes may wait for its holder.
type Wait struct {
	Process Process `json:"process"`
	Thread  uint32  `json:"thread,omitempty"`
	Start   int64   `json:"start"`
	// End is when the wait was last seen, if the source noticed its end only at the event's time; 0: it ended at the
	// event's time.
	End  int64    `json:"end,omitempty"`
	Kind WaitKind `json:"kind"`
	// Name is the system call ("flock", "nanosleep"), or the kernel lock ("rtnl").
	Name string `json:"name"`
	Path string `json:"path,omitempty"`
	// Error is why the lock was not acquired: "EAGAIN".
	Error string `json:"error,omitempty"`
	// Released is true if the lock was released, not acquired.
	Released bool `json:"released,omitempty"`
	// Holder held the lock when the wait began; nil if no process did, or if the holder is unknown.
	Holder *Actor `json:"holder,omitempty"`
}

// Until returns the end of a wait that was reported at now.
func (w *Wait) Until(now int64) int64 {
	if w.End == 0 {
		return now
	}
	return min(max(w.Start, w.End), now)
}

// Actor is another process of an event: the holder of a lock, a listener, or an agent.
type Actor struct {
	// Process may belong to no plugin's tree.
	Process Process `json:"process,omitempty"`
	PID     uint32  `json:"pid,omitempty"`
	// Name is the kernel's name of the program, up to 15 bytes (TASK_COMM_LEN).
	Name string `json:"name,omitempty"`
	// Parent is the name of the program that started it.
	Parent string `json:"parent,omitempty"`
	// State is AgentStopped or AgentFrozen if the holder of a file lock was so for most of the wait. By is as in
	// Agent.
	State AgentState `json:"state,omitempty"`
	By    string     `json:"by,omitempty"`
}

// Halted reports whether the actor was stopped or frozen.
func (a *Actor) Halted() bool { return a != nil && a.State.Halted() }

// Answer is the kernel's refusal of the Request with the same Port and Sequence. A granted request has no Answer.
type Answer struct {
	Process  Process `json:"process"`
	Port     uint32  `json:"port,omitempty"`
	Sequence uint32  `json:"sequence"`
	Error    string  `json:"error"`
	// Message is the kernel's explanation (extack).
	Message string `json:"message,omitempty"`
}

// Link reports an interface's name and index, from the kernel's answer to a process.
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

// Address reports the state of an IPv6 address, from the kernel's answer to a process. The kernel does not use an
// address until duplicate address detection ends.
type Address struct {
	Process Process      `json:"process"`
	NetNS   Namespace    `json:"netns,omitzero"`
	Index   uint32       `json:"index"`
	Address string       `json:"address"`
	State   AddressState `json:"state"`
}

// Setting reports that a process wrote a sysctl.
type Setting struct {
	Process Process `json:"process"`
	Thread  uint32  `json:"thread,omitempty"`
	Start   int64   `json:"start"`
	// Key is the path below /proc/sys: "net/ipv4/ip_forward".
	Key   string    `json:"key"`
	Value string    `json:"value"`
	Error string    `json:"error,omitempty"`
	NetNS Namespace `json:"netns,omitzero"`
	// Mentions is as in Request.
	Mentions []string `json:"mentions,omitempty"`
}

// Enter reports that a thread entered an existing network namespace (setns) or a new one (unshare).
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
	// Name is the system call: "mount", "umount2", "move_mount".
	Name string `json:"name"`
	// Source is a path, a device, or another source of the file system; empty for an unmount.
	Source string `json:"source,omitempty"`
	Target string `json:"target,omitempty"`
	// FSType is empty for bind mounts and unmounts.
	FSType string `json:"fstype,omitempty"`
	// Flags are named as in mount(8) and umount(8): "bind", "ro", "detach". Flags that only tune the file system are
	// omitted.
	Flags []string `json:"flags,omitempty"`
	Error string   `json:"error,omitempty"`
}

// Connect reports that a process connected a socket, or tried to.
type Connect struct {
	Process Process `json:"process"`
	Thread  uint32  `json:"thread,omitempty"`
	Start   int64   `json:"start"`
	// Socket identifies the connection in Accept and Close, and is unique while the connection is open.
	Socket string `json:"socket"`
	// Network is "unix" or "tcp"; Address is a path or "address:port".
	Network string `json:"network"`
	Address string `json:"address"`
	Error   string `json:"error,omitempty"`
	// Listener created the listening socket; nil if unknown. Under socket activation another process answers.
	Listener *Actor `json:"listener,omitempty"`
}

// Accept reports which agent answered the Connect of a socket.
type Accept struct {
	Socket string `json:"socket"`
	Agent  Actor  `json:"agent"`
	// Listens is true if no accept was seen: Agent is then the creator of the listening socket.
	Listens bool `json:"listens,omitempty"`
}

// Close reports that a process closed a connection.
type Close struct {
	Process Process `json:"process"`
	Socket  string  `json:"socket"`
}

// Exchange reports that an agent of a call, or a process that such an agent waits for, wrote to a stream and read
// from it 1 ms or more later. Such streams are usually older than the call.
type Exchange struct {
	Process Process `json:"process"`
	// Thread is the reading thread; 0 until it read.
	Thread uint32 `json:"thread,omitempty"`
	// Start is the first write since the last read; for Unasked the last read, or 0 if that was before the process
	// was followed. The event's Time is the next read.
	Start int64 `json:"start,omitempty"`
	// Last is the last write, if it was after Start: on a shared stream, an unanswered request may precede the
	// request that is waited for. 0: none, or unknown.
	Last int64 `json:"last,omitempty"`
	// Socket is unique while the stream is open; Connect, Accept and Close use the same name.
	Socket string `json:"socket"`
	// Network and Address are of the other end, as in Connect; Address is empty if it has none.
	Network string `json:"network,omitempty"`
	Address string `json:"address,omitempty"`
	// Peer has the other end; nil if unknown, such as on another machine.
	Peer *Actor `json:"peer,omitempty"`
	// Unasked is true if the peer wrote without a preceding request: a notification, or the answer to an earlier
	// request.
	Unasked bool `json:"unasked,omitempty"`
	// Pending is true while the process has not read; it is repeated from time to time. It may also be Unasked: the
	// last read came after the last write, but the process wrote for a call in progress and may wait for more. A
	// Pending exchange with Start 0 has no observed request: the peer is stopped, shares a stream with the awaited
	// process, and may be why that one does not answer. When the process reads there, an Unasked exchange follows.
	Pending bool `json:"pending,omitempty"`
	// Error is why the process will never read: "EPIPE"; "EOF" if the peer hung up or exited; "closed" by the process
	// itself; "unfollowed" if it was not found waiting any more and did not read.
	Error string `json:"error,omitempty"`
}

// AgentState is the state of an agent's threads.
type AgentState string

// Halted reports whether the process does nothing until it is resumed.
func (s AgentState) Halted() bool { return s == AgentStopped || s == AgentFrozen }

// The states of an agent. If its threads differ, the first of these that applies to a thread.
const (
	// AgentStopped: by a signal or a debugger.
	AgentStopped AgentState = "stopped"
	// AgentFrozen: by the freezer of its cgroup.
	AgentFrozen AgentState = "frozen"
	// AgentUninterruptible: in a kernel wait that no signal ends (D).
	AgentUninterruptible AgentState = "uninterruptible"
	// AgentRunning: on a CPU, or waiting for one.
	AgentRunning AgentState = "running"
	// AgentWaiting: in a kernel function in which idle threads do not wait.
	AgentWaiting AgentState = "waiting"
	// AgentIdle: every thread waits for work or for other threads of the process.
	AgentIdle AgentState = "idle"
)

// Agent is a sample of an agent, or of a process that an agent waits for: when it begins to be followed, from time to
// time during a call, and when it is no longer followed. With a Since it is a sample of a plugin's own process while
// that is stopped or frozen, and one after it resumed.
type Agent struct {
	Process Process `json:"process"`
	PID     uint32  `json:"pid,omitempty"`
	Name    string  `json:"name,omitempty"`
	// Hidden is true if connections to the agent are invisible: its work is attributed to a call by the sandbox that
	// it mentions, or possibly by time.
	Hidden bool `json:"hidden,omitempty"`
	// Over is true if the agent is no longer followed.
	Over bool `json:"over,omitempty"`
	// CPU is the CPU time since its start, in ns, to 10 ms, without its children.
	CPU int64 `json:"cpu,omitempty"`
	// State is empty in old recordings.
	State AgentState `json:"state,omitempty"`
	// Channel is the kernel function in which a thread of a waiting or uninterruptible agent waits. Without a State
	// it is that of the first thread, which usually is idle.
	Channel string `json:"channel,omitempty"`
	// By is what stopped it, if known: the debugger's name and PID ("gdb (pid 812)"), or the file that freezes its
	// cgroup.
	By string `json:"by,omitempty"`
	// Since is the time of the previous sample of a plugin's process.
	Since int64 `json:"since,omitempty"`
	// Killed is "OOM" if the kernel killed it because memory ran out.
	Killed string `json:"killed,omitempty"`
	// Programs are the names (up to 15 letters) of programs that it ran while it was not followed.
	Programs []string `json:"programs,omitempty"`
}

// Configuration is the network configuration that a plugin read from standard input.
type Configuration struct {
	Process    Process `json:"process"`
	Network    string  `json:"network,omitempty"`
	Type       string  `json:"type,omitempty"`
	CNIVersion string  `json:"cni_version,omitempty"`
	IPAM       string  `json:"ipam,omitempty"`
	// Invalid is why it could not be read; empty if it could.
	Invalid string `json:"invalid,omitempty"`
}

// Result is the result or error that a plugin wrote to standard output.
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
	// Invalid is why it could not be read; empty if it could.
	Invalid string `json:"invalid,omitempty"`
}

// FirstConnection reports the first established TCP connection of a network namespace, in either direction.
type FirstConnection struct {
	NetNS  Namespace `json:"netns"`
	Local  string    `json:"local,omitempty"`
	Remote string    `json:"remote,omitempty"`
}

// Questions reports the number and total duration (ns) of a process's short queries, which are not reported one by
// one. It comes when the image ends.
type Questions struct {
	Process Process `json:"process"`
	Count   uint64  `json:"count"`
	Took    int64   `json:"took"`
}

// Cut reports that a process exceeded a limit of the source.
type Cut struct {
	Process Process `json:"process"`
	// What was dropped: "bytes" of its input or output, or "requests".
	What  string `json:"what"`
	Count uint64 `json:"count"`
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
