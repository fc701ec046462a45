package event

var processKinds = map[string]Body{
	"exec": &Exec{},
	"fork": &Fork{},
	"exit": &Exit{},
}

// Fork reports that a process of a plugin's tree forked. The new process may never exec, such as a subshell.
type Fork struct {
	Process Process `json:"process"`
	Parent  Process `json:"parent"`
	// PID is the number in cniscope's own PID namespace.
	PID uint32 `json:"pid"`
}

// Exec reports that a process began to run an image: a possible CNI plugin (privileged, with CNI_COMMAND in its
// environment), or a descendant of one.
type Exec struct {
	Process Process `json:"process"`
	// Parent forked the process, and may have exited since.
	Parent    Process `json:"parent"`
	PID       uint32  `json:"pid"`
	ParentPID uint32  `json:"ppid"`
	// Started is the time of the fork, in monotonic ns.
	Started int64 `json:"started"`
	// Root is true if the parent is not part of a plugin's tree: a container runtime or an agent started the image.
	Root bool `json:"root,omitempty"`
	// Caller is why a root is trusted to be a CNI plugin; empty for other images, and in old recordings.
	Caller Caller `json:"caller,omitempty"`

	// File is the executed path as the caller gave it: of a script, not of its interpreter.
	File string `json:"file"`
	// Name is the base name of the first argument without ".exe" (on Debian the file of iptables is
	// xtables-nft-multi), or of a script's file.
	Name string `json:"name"`
	// Args are the arguments after the first that the command's allow-list permits.
	Args []string `json:"args,omitempty"`
	// Hidden is the number of omitted arguments.
	Hidden int `json:"hidden,omitempty"`
	// Stdin identifies standard input: processes with the same Stdin read from the same pipe. NoStdin means nothing
	// to read from; empty means unknown.
	Stdin string `json:"stdin,omitempty"`
	// NetNS is the network namespace at exec.
	NetNS Namespace `json:"netns,omitzero"`
	// InPath is true if File is in a directory of CNI_PATH, where libcni looks for plugins. A command that inherited
	// a plugin's environment is elsewhere.
	InPath bool `json:"in_path,omitempty"`
	// Call is the CNI call of the environment. It is nil unless InPath, because other images only inherited it, and
	// for a process that lacks the privileges to be trusted.
	Call *Call `json:"call,omitempty"`
	// Mentions are the sandboxes with a call in progress that its arguments or namespace name; only for commands of
	// an agent.
	Mentions []string `json:"mentions,omitempty"`
	// Used is the consumption of the process before this image.
	Used Usage `json:"used,omitzero"`
	// Truncated is true if arguments or environment exceed the source's limit.
	Truncated bool `json:"truncated,omitempty"`
	// Unidentified is true if the process had exited, or ran another image, before the source examined it: only its
	// place in the tree, its times, and sometimes Name are known.
	Unidentified bool `json:"unidentified,omitempty"`
	// Build is a fingerprint of a plugin's file, which changes with the program; empty if it was not read.
	Build string `json:"build,omitempty"`
	// InFlight is true if the process ran before the source started: Time is then its start, and its earlier actions
	// are unknown.
	InFlight bool `json:"in_flight,omitempty"`
}

// NoStdin is the standard input of a process whose stdin is closed, or a device such as /dev/null.
const NoStdin = "none"

// Caller is the kind of process that started a plugin, and so why the plugin is trusted.
type Caller string

// The trusted callers (docs/trust.md).
const (
	// CallerRuntime: the container runtime.
	CallerRuntime Caller = "runtime"
	// CallerAgent: an agent that is privileged on the node.
	CallerAgent Caller = "agent"
	// CallerHost: a privileged process that sees the host's file systems.
	CallerHost Caller = "host"
	// CallerPrivileged: a fully privileged process, on a node whose runtime is unknown.
	CallerPrivileged Caller = "privileged"
	// CallerRootless: a runtime in a user namespace.
	CallerRootless Caller = "rootless"
)

// Anchored reports whether the caller is the container runtime, which is assumed for old recordings.
func (c Caller) Anchored() bool { return c == CallerRuntime || c == "" }

// Exit reports that a process, with all of its threads, exited.
type Exit struct {
	Process Process `json:"process"`
	// Code is the exit code; 0 if Signal is set.
	Code uint32 `json:"code,omitempty"`
	// Signal is the signal that killed it, such as "SIGKILL"; empty if it exited by itself.
	Signal string `json:"signal,omitempty"`
	// Used is the total consumption of the process, without its children.
	Used  Usage     `json:"used,omitzero"`
	NetNS Namespace `json:"netns,omitzero"`
	// Unseen is true if the exit was not observed: the process was found gone at Time, and code and usage are
	// unknown.
	Unseen bool `json:"unseen,omitempty"`
}

// Usage is the consumption of a process since its fork, in ns.
type Usage struct {
	// CPU is the time on a CPU.
	CPU int64 `json:"cpu,omitempty"`
	// RunDelay is the time that it was runnable and waited for a CPU.
	RunDelay int64 `json:"run_delay,omitempty"`
}

// Call is the identity of a CNI call, from the plugin's environment (CNI specification).
type Call struct {
	// Command is CNI_COMMAND: ADD, DEL, CHECK, GC, STATUS or VERSION.
	Command     string `json:"command"`
	ContainerID string `json:"container_id,omitempty"`
	// NetNS is CNI_NETNS, a path; empty at the second DEL of a sandbox.
	NetNS  string `json:"netns,omitempty"`
	IfName string `json:"ifname,omitempty"`
	// Pod is the pod of CNI_ARGS.
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
