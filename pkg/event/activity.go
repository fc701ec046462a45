package event

// The events of this file, and Request, are what processes of a plugin's tree, and the agents that
// answer them, ask of the kernel and wait for. Where a type has a Start, that is when it began, in
// monotonic nanoseconds, and Event.Time is when it ended. An Error is the name of an error number
// ("EEXIST"); it is empty on success.

// activityKinds lists them by the names of their kinds.
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

// Detail reports that the source began, or ceased, to see the events of this file. It sees them
// only while CNI calls are under way.
type Detail struct {
	On bool `json:"on"`
}

// WaitKind is the kind of thing that a thread waited for.
type WaitKind string

// The kinds of waits.
const (
	// WaitLock is a lock on a file (flock, fcntl).
	WaitLock WaitKind = "lock"
	// WaitMutex is a lock inside the kernel, such as rtnl.
	WaitMutex WaitKind = "mutex"
	// WaitSleep is a timer, which expired.
	WaitSleep WaitKind = "sleep"
	// WaitPoll is the first of several files, threads or children to become ready; one did.
	WaitPoll WaitKind = "poll"
	// WaitCall is any other system call.
	WaitCall WaitKind = "system call"
)

// Wait reports that a thread was blocked in the kernel for 1 ms or longer, in a mutex for 0.1 ms. A
// lock on a file is reported however short the wait was, because others may wait for its holder.
type Wait struct {
	Process Process `json:"process"`
	Thread  uint32  `json:"thread,omitempty"`
	Start   int64   `json:"start"`
	// End is when it was known to last for the last time, if its end was only noticed at the event's time; 0: that is it.
	End  int64    `json:"end,omitempty"`
	Kind WaitKind `json:"kind"`
	// Name is the system call ("flock", "nanosleep"), or the name of a mutex ("rtnl").
	Name string `json:"name"`
	// Path is the locked file.
	Path string `json:"path,omitempty"`
	// Error is why the lock was not taken: "EAGAIN".
	Error string `json:"error,omitempty"`
	// Released is true if the lock was given back rather than taken.
	Released bool `json:"released,omitempty"`
	// Holder held the lock when the wait began; nil if nobody did, or if that is not known.
	Holder *Actor `json:"holder,omitempty"`
}

// Until returns when the wait was over that was told of at now.
func (w *Wait) Until(now int64) int64 {
	if w.End == 0 {
		return now
	}
	return min(max(w.Start, w.End), now)
}

// Actor is another process that takes part in an event: it holds the lock, listens, or answers.
type Actor struct {
	// Process need not belong to any plugin's tree.
	Process Process `json:"process,omitempty"`
	PID     uint32  `json:"pid,omitempty"`
	// Name is the kernel's name of its program, at most 15 bytes (TASK_COMM_LEN).
	Name string `json:"name,omitempty"`
	// Parent is the name of the program that started it.
	Parent string `json:"parent,omitempty"`
	// State is AgentStopped or AgentFrozen if the holder of a lock on a file was found so for most of the wait, and By
	// is as in Agent.
	State AgentState `json:"state,omitempty"`
	By    string     `json:"by,omitempty"`
}

// Halted reports whether it is known to have been stopped or frozen.
func (a *Actor) Halted() bool { return a != nil && a.State.Halted() }

// Answer is the kernel's refusal of the Request with the same Port and Sequence. Requests that are
// granted have none.
type Answer struct {
	Process  Process `json:"process"`
	Port     uint32  `json:"port,omitempty"`
	Sequence uint32  `json:"sequence"`
	Error    string  `json:"error"`
	// Message is the kernel's explanation in words (extack).
	Message string `json:"message,omitempty"`
}

// Link reports that the kernel told a process the name of the interface with that index.
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

// Address reports that the kernel told a process a new state of an IPv6 address: the kernel does not
// use an address before duplicate address detection is over.
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
	// Key is its path below /proc/sys: "net/ipv4/ip_forward".
	Key   string    `json:"key"`
	Value string    `json:"value"`
	Error string    `json:"error,omitempty"`
	NetNS Namespace `json:"netns,omitzero"`
	// Mentions is as in Request.
	Mentions []string `json:"mentions,omitempty"`
}

// Enter reports that a thread entered a network namespace that exists (setns) or a new one (unshare).
type Enter struct {
	Process Process   `json:"process"`
	Thread  uint32    `json:"thread,omitempty"`
	NetNS   Namespace `json:"netns"`
}

// Mount reports that a process mounted, bound, moved or unmounted a file system, if that took 1 ms
// or longer, or failed.
type Mount struct {
	Process Process `json:"process"`
	Thread  uint32  `json:"thread,omitempty"`
	Start   int64   `json:"start"`
	// Name is the system call: "mount", "umount2", "move_mount".
	Name string `json:"name"`
	// Source is a path, a device, or what the file system takes for one; an unmount has none.
	Source string `json:"source,omitempty"`
	Target string `json:"target,omitempty"`
	// FSType is the type of the file system; bind mounts and unmounts have none.
	FSType string `json:"fstype,omitempty"`
	// Flags are named as in mount(8) and umount(8): "bind", "ro", "detach". Those that only tune
	// the file system are left out.
	Flags []string `json:"flags,omitempty"`
	Error string   `json:"error,omitempty"`
}

// Connect reports that a process connected a socket to another process, or tried to.
type Connect struct {
	Process Process `json:"process"`
	Thread  uint32  `json:"thread,omitempty"`
	Start   int64   `json:"start"`
	// Socket identifies the connection in Accept and Close; it is unique while the connection is open.
	Socket string `json:"socket"`
	// Network is "unix" or "tcp". Address is a path or "address:port".
	Network string `json:"network"`
	Address string `json:"address"`
	Error   string `json:"error,omitempty"`
	// Listener created the listening socket; nil if that is not known. Under socket activation it
	// is not who answers.
	Listener *Actor `json:"listener,omitempty"`
}

// Accept reports which agent answered the Connect of a socket.
type Accept struct {
	Socket string `json:"socket"`
	Agent  Actor  `json:"agent"`
	// Listens is true if nobody was seen to accept: Agent then created the listening socket.
	Listens bool `json:"listens,omitempty"`
}

// Close reports that a process closed a connection.
type Close struct {
	Process Process `json:"process"`
	Socket  string  `json:"socket"`
}

// Exchange reports that an agent that is called, or a process that such an agent waits for, wrote to a
// stream and read from it again after 1 ms or longer. Most such streams were connected long before.
type Exchange struct {
	Process Process `json:"process"`
	// Thread is the one that read; 0 while nobody has.
	Thread uint32 `json:"thread,omitempty"`
	// Start is its first write since it had read from there; where it wrote nothing (Unasked), when
	// it last read; 0 if that was before it was followed. The event's Time is when it read again.
	Start int64 `json:"start,omitempty"`
	// Last is its last write, where that was after Start: on a stream that many share, what is waited for may
	// have been asked after something that nobody answers. 0: there is none, or it is not known.
	Last int64 `json:"last,omitempty"`
	// Socket is unique while the stream is open; Connect, Accept and Close name it so, too.
	Socket string `json:"socket"`
	// Network and Address are of the other end, as in Connect; Address is empty if it has none.
	Network string `json:"network,omitempty"`
	Address string `json:"address,omitempty"`
	// Peer has the other end; nil if that is not known, as on another machine.
	Peer *Actor `json:"peer,omitempty"`
	// Unasked is true if the peer spoke by itself: it tells of a change, or answers what was asked
	// before.
	Unasked bool `json:"unasked,omitempty"`
	// Pending is true while it has not read: told from time to time while it waits. It may be Unasked, too: what
	// it read last came after what it wrote last, but it wrote for a call that goes on, and may wait for more.
	// With a Start of 0
	// nobody saw what was asked: the peer stands still, has a stream with a process that is waited
	// for, and may be why that does not answer. Who was waited for is told Unasked then, when it reads there.
	Pending bool `json:"pending,omitempty"`
	// Error is why it will never read: "EPIPE"; "EOF", as the peer hung up or ended; "closed" by whoever
	// waited; "unfollowed" where it was not found to wait any more, and did not read.
	Error string `json:"error,omitempty"`
}

// AgentState is what an agent was found doing, by all of its threads.
type AgentState string

// Halted reports whether it is a state in which a process does nothing until it is resumed.
func (s AgentState) Halted() bool { return s == AgentStopped || s == AgentFrozen }

// The states of an agent. Where its threads differ, the first of these that one of them is in.
const (
	// AgentStopped: by a signal or a debugger.
	AgentStopped AgentState = "stopped"
	// AgentFrozen: by its cgroup's freezer.
	AgentFrozen AgentState = "frozen"
	// AgentUninterruptible: waiting in the kernel for what no signal ends (D).
	AgentUninterruptible AgentState = "uninterruptible"
	// AgentRunning: on a CPU, or waiting for one.
	AgentRunning AgentState = "running"
	// AgentWaiting: in a kernel function that is not how threads without work wait.
	AgentWaiting AgentState = "waiting"
	// AgentIdle: every thread waits for work or for others of its own.
	AgentIdle AgentState = "idle"
)

// Agent is a sample of an agent, or of a process that one waits for: taken when it begins to be
// followed, from time to time while it is called, and when it is no longer followed. With a Since it is one of a
// plugin's own process that is stopped or frozen, from time to time, and once when it goes on.
type Agent struct {
	Process Process `json:"process"`
	PID     uint32  `json:"pid,omitempty"`
	Name    string  `json:"name,omitempty"`
	// Hidden is true if nobody sees who calls it, so that what it runs is a call's by what it mentions, or
	// perhaps by its time.
	Hidden bool `json:"hidden,omitempty"`
	// Over is true if the agent is no longer followed.
	Over bool `json:"over,omitempty"`
	// CPU is the time that it has run since it was started, in nanoseconds, to 10 ms, without its children.
	CPU int64 `json:"cpu,omitempty"`
	// State is empty in recordings of before it was told.
	State AgentState `json:"state,omitempty"`
	// Channel is the kernel function in which a thread of that State waits; it is told of those that
	// wait, or are uninterruptible. Without a State it is that of the first thread, which of most agents is idle.
	Channel string `json:"channel,omitempty"`
	// By is what stopped it, as far as is known: the debugger's name and number ("gdb (pid 812)") if it is traced, or
	// the file that freezes its cgroup, by its path here.
	By string `json:"by,omitempty"`
	// Since is when a plugin's process was looked at before this sample.
	Since int64 `json:"since,omitempty"`
	// Killed is "OOM" if the kernel killed it for want of memory.
	Killed string `json:"killed,omitempty"`
	// Programs are those that it ran while it was not followed, by 15 letters of their names at the most.
	Programs []string `json:"programs,omitempty"`
}

// Configuration is the network configuration that a plugin read from its standard input.
type Configuration struct {
	Process    Process `json:"process"`
	Network    string  `json:"network,omitempty"`
	Type       string  `json:"type,omitempty"`
	CNIVersion string  `json:"cni_version,omitempty"`
	IPAM       string  `json:"ipam,omitempty"`
	// Invalid describes why it could not be read; empty if it could.
	Invalid string `json:"invalid,omitempty"`
}

// Result is the result or error that a plugin wrote to its standard output.
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
	// Invalid describes why it could not be read; empty if it could.
	Invalid string `json:"invalid,omitempty"`
}

// FirstConnection reports that the first TCP connection of a network namespace was established, in
// either direction.
type FirstConnection struct {
	NetNS  Namespace `json:"netns"`
	Local  string    `json:"local,omitempty"`
	Remote string    `json:"remote,omitempty"`
}

// Questions reports how many short requests that changed nothing an image sent which were not told one by one,
// and how long they took in all, in nanoseconds. It comes when the image ends.
type Questions struct {
	Process Process `json:"process"`
	Count   uint64  `json:"count"`
	Took    int64   `json:"took"`
}

// Cut reports that a process did more than the source keeps.
type Cut struct {
	Process Process `json:"process"`
	// What was left out: "bytes" of what it read or wrote, or "requests".
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
