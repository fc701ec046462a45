package event

// processKinds lists the events of the life of processes, by the names of their kinds.
var processKinds = map[string]Body{
	"exec": &Exec{},
	"fork": &Fork{},
	"exit": &Exit{},
}

// Fork reports that a process of a plugin's tree forked. The new process may never run an image of
// its own: a subshell does not.
type Fork struct {
	Process Process `json:"process"`
	Parent  Process `json:"parent"`
	// PID is the number of the new process in cniscope's own PID namespace.
	PID uint32 `json:"pid"`
}

// Exec reports that a process began to run an image: a process that may be a CNI plugin (privileged,
// with CNI_COMMAND in its environment), or a descendant of one.
type Exec struct {
	Process Process `json:"process"`
	// Parent forked the process, and may have ended since.
	Parent    Process `json:"parent"`
	PID       uint32  `json:"pid"`
	ParentPID uint32  `json:"ppid"`
	// Started is when the process was forked, in monotonic nanoseconds.
	Started int64 `json:"started"`
	// Root is true if the parent is not part of a plugin's tree: a container runtime or an agent
	// started the image.
	Root bool `json:"root,omitempty"`
	// Caller is why a root is believed to be a CNI plugin; empty for others, and in old recordings.
	Caller Caller `json:"caller,omitempty"`

	// File is the path that was executed, as the caller gave it: that of a script, not of its interpreter.
	File string `json:"file"`
	// Name is the base name of the first argument without ".exe" (on Debian the file of iptables
	// is xtables-nft-multi), or of a script's file.
	Name string `json:"name"`
	// Args are the arguments after the first that the tool's allow-list lets through.
	Args []string `json:"args,omitempty"`
	// Hidden is the number of arguments that it keeps back.
	Hidden int `json:"hidden,omitempty"`
	// Stdin identifies standard input: two processes with the same Stdin read from the same pipe.
	// It is NoStdin if there is nothing to read from, and empty if unknown.
	Stdin string `json:"stdin,omitempty"`
	// NetNS is the network namespace of the process at exec.
	NetNS Namespace `json:"netns,omitzero"`
	// InPath is true if File lies in a folder of CNI_PATH, the only ones that libcni searches for
	// plugins and their delegates. What merely inherited a plugin's environment does not.
	InPath bool `json:"in_path,omitempty"`
	// Call is what the environment says about the CNI call. It is nil unless InPath, because others
	// only inherited it, and for a process that is not privileged enough to be believed.
	Call *Call `json:"call,omitempty"`
	// Mentions are the ids of the sandboxes with an open call that its arguments or its namespace
	// name; only of what an agent runs.
	Mentions []string `json:"mentions,omitempty"`
	// Used is what the process consumed before this image.
	Used Usage `json:"used,omitzero"`
	// Truncated is true if arguments or environment are longer than the source reads.
	Truncated bool `json:"truncated,omitempty"`
	// Unidentified is true if the process had ended, or ran another image, before the source could look at
	// it: its place in the tree and its times are known, and Name perhaps, but nothing else.
	Unidentified bool `json:"unidentified,omitempty"`
	// Build is a fingerprint of the file of a plugin, which changes with its program; empty if nobody looked.
	Build string `json:"build,omitempty"`
	// InFlight is true if the process was already running when the source started: Time is then
	// its start, and what it did before is unknown.
	InFlight bool `json:"in_flight,omitempty"`
}

// NoStdin is the standard input of a process that has none: it is closed, or a device such as /dev/null.
const NoStdin = "none"

// Caller is who started a plugin, and so why it is believed to be one.
type Caller string

// Those that are believed (docs/trust.md).
const (
	// CallerRuntime: the container runtime itself.
	CallerRuntime Caller = "runtime"
	// CallerAgent: an agent that is privileged on the node.
	CallerAgent Caller = "agent"
	// CallerHost: somebody privileged who sees the host's file systems.
	CallerHost Caller = "host"
	// CallerPrivileged: somebody who may do anything on a node whose runtime is not known.
	CallerPrivileged Caller = "privileged"
	// CallerRootless: a runtime in a user namespace.
	CallerRootless Caller = "rootless"
)

// Anchored reports whether it was the container runtime, which is assumed of old recordings.
func (c Caller) Anchored() bool { return c == CallerRuntime || c == "" }

// Exit says that a process, with all of its threads, is over.
type Exit struct {
	Process Process `json:"process"`
	// Code is the exit code; 0 where Signal is set.
	Code uint32 `json:"code,omitempty"`
	// Signal is what killed it, as "SIGKILL"; empty if it ended by itself.
	Signal string `json:"signal,omitempty"`
	// Used is what the process consumed in all, its children not included.
	Used  Usage     `json:"used,omitzero"`
	NetNS Namespace `json:"netns,omitzero"`
	// Unseen is true where the end itself was not observed: the process was found
	// to be gone at Time, and neither code nor usage are known.
	Unseen bool `json:"unseen,omitempty"`
}

// Usage is what a process consumed since it was forked, in nanoseconds.
type Usage struct {
	// CPU is the time it ran.
	CPU int64 `json:"cpu,omitempty"`
	// RunDelay is the time it was runnable and waited for a CPU.
	RunDelay int64 `json:"run_delay,omitempty"`
}

// Call is the identity of a CNI call, as the CNI specification puts it into a plugin's environment.
type Call struct {
	// Command is CNI_COMMAND: ADD, DEL, CHECK, GC, STATUS or VERSION.
	Command     string `json:"command"`
	ContainerID string `json:"container_id,omitempty"`
	// NetNS is CNI_NETNS, a path; empty at the second DEL of a sandbox.
	NetNS  string `json:"netns,omitempty"`
	IfName string `json:"ifname,omitempty"`
	// Pod is what CNI_ARGS says of the pod.
	Pod Pod `json:"pod,omitzero"`
	// Trace is TRACEPARENT and TRACESTATE (containerd >= 2.4).
	Trace TraceContext `json:"trace,omitzero"`
}

// Pod names a Kubernetes pod. Any field may be empty.
type Pod struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	UID       string `json:"uid,omitempty"`
}

func (b *Fork) Doer() Process { return b.Parent }
func (b *Exec) Doer() Process { return b.Process }
func (b *Exit) Doer() Process { return b.Process }
