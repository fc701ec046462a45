package event

var processKinds = map[string]Body{
	"exec": &Exec{},
	"fork": &Fork{},
	"exit": &Exit{},
	"step": &Step{},
}

// Fork reports a fork in a plugin's tree.
type Fork struct {
	Process Process `json:"process"`
	Parent  Process `json:"parent"`
	PID     uint32  `json:"pid"`
	// The parent's calls, innermost first, without its standard library's.
	Stack  []Frame     `json:"stack,omitempty"`
	Thread *ThreadSpan `json:"thread,omitempty"`
}

// ThreadSpan is a span that a thread publishes (OTEP 4947).
type ThreadSpan struct {
	TraceContext
	// At a fork: no tenant's.
	Trusted bool `json:"trusted,omitempty"`
}

// Frame is one call of a trusted program.
type Frame struct {
	Function string `json:"function"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	// The innermost one slept.
	Sleeps bool `json:"sleeps,omitempty"`
}

// Exec reports a new image: a possible CNI plugin (privileged, with CNI_COMMAND) or its descendant.
type Exec struct {
	Process   Process `json:"process"`
	Parent    Process `json:"parent"`
	PID       uint32  `json:"pid"`
	ParentPID uint32  `json:"ppid"`
	Started   int64   `json:"started"` // fork, monotonic ns
	// The parent is in no plugin's tree.
	Root bool `json:"root,omitempty"`
	// Why a root is trusted; empty in old recordings.
	Caller Caller `json:"caller,omitempty"`

	// For a script its path, not the interpreter's.
	File string `json:"file"`
	// The base name of argument 0 without ".exe", or of the script: Debian's iptables has the File xtables-nft-multi.
	Name string `json:"name"`
	// Permitted arguments, without the first. Hidden counts the withheld ones.
	Args   []string `json:"args,omitempty"`
	Hidden int      `json:"hidden,omitempty"`
	// Equal for readers of one pipe; NoStdin; or empty if unknown.
	Stdin string    `json:"stdin,omitempty"`
	NetNS Namespace `json:"netns,omitzero"`
	// File is in a directory of CNI_PATH, unlike commands that inherit a plugin's environment.
	InPath bool `json:"in_path,omitempty"`
	// Set if the process is trusted and InPath.
	Call *Call `json:"call,omitempty"`
	// Sandboxes with a call in progress that an agent's command names.
	Mentions []string `json:"mentions,omitempty"`
	// The consumption before this image.
	Used      Usage `json:"used,omitzero"`
	Truncated bool  `json:"truncated,omitempty"`
	// It exited or changed its image before it was examined: only parent, times and sometimes Name are known.
	Unidentified bool `json:"unidentified,omitempty"`
	// Fingerprint of a plugin's file.
	Build string `json:"build,omitempty"`
	// It was running before the source started; Time is its start.
	InFlight bool `json:"in_flight,omitempty"`
}

// NoStdin is a closed standard input, or a device.
const NoStdin = "none"

// Caller is the kind of a plugin's starter.
type Caller string

// Trusted callers (docs/trust.md).
const (
	CallerRuntime    Caller = "runtime"
	CallerAgent      Caller = "agent"      // privileged on the node
	CallerHost       Caller = "host"       // privileged, sees the host's file systems
	CallerPrivileged Caller = "privileged" // fully privileged, with an unknown runtime
	CallerRootless   Caller = "rootless"   // a runtime in a user namespace
)

// Anchored reports whether the caller is the runtime, which old recordings omit.
func (c Caller) Anchored() bool { return c == CallerRuntime || c == "" }

// Exit reports that all threads exited.
type Exit struct {
	Process Process   `json:"process"`
	Code    uint32    `json:"code,omitempty"`
	Signal  string    `json:"signal,omitempty"`
	Used    Usage     `json:"used,omitzero"`
	NetNS   Namespace `json:"netns,omitzero"`
	// It was found gone at Time; code and usage are unknown.
	Unseen bool `json:"unseen,omitempty"`
}

// Step is a program of a sandbox's start, at its exit.
type Step struct {
	Process   Process  `json:"process"`
	Parent    Process  `json:"parent"`
	PID       uint32   `json:"pid"`
	ParentPID uint32   `json:"parent_pid,omitempty"`
	Started   int64    `json:"started"`
	SandboxID string   `json:"sandbox_id"`
	Kind      StepKind `json:"kind"`
	Name      string   `json:"name"`
	Verb      string   `json:"verb,omitempty"`    // "create"
	Systemd   bool     `json:"systemd,omitempty"` // its cgroups

	Code   uint32 `json:"code,omitempty"`
	Signal string `json:"signal,omitempty"`
	Used   Usage  `json:"used,omitzero"`
}

// StepKind is a program's part in a sandbox's start.
type StepKind string

// Kinds of steps.
const (
	StepShim    StepKind = "shim"
	StepRuntime StepKind = "oci_runtime"
	StepHook    StepKind = "hook"
	StepCommand StepKind = "command"
)

// Usage is a process's consumption since its fork, in ns.
type Usage struct {
	CPU int64 `json:"cpu,omitempty"`
	// Runnable without a CPU.
	RunDelay int64 `json:"run_delay,omitempty"`
}

// Call is the CNI call of a plugin's environment.
type Call struct {
	Command     string `json:"command"`
	ContainerID string `json:"container_id,omitempty"`
	// A path; empty at a sandbox's second DEL.
	NetNS  string `json:"netns,omitempty"`
	IfName string `json:"ifname,omitempty"`
	Pod    Pod    `json:"pod,omitzero"`
	// TRACEPARENT and TRACESTATE (containerd >= 2.4).
	Trace TraceContext `json:"trace,omitzero"`
	// BAGGAGE
	Baggage string `json:"baggage,omitempty"`
}

// Pod names a Kubernetes pod.
type Pod struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	UID       string `json:"uid,omitempty"`
}

func (b *Fork) Doer() Process { return b.Parent }
func (b *Exec) Doer() Process { return b.Process }
func (b *Exit) Doer() Process { return b.Process }
func (b *Step) Doer() Process { return b.Process }
