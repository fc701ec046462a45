package event

// nodeKinds lists the events of the node and its runtime, by the names of their kinds.
var nodeKinds = map[string]Body{
	"sandbox":   &Sandbox{},
	"above":     &Above{},
	"runtime":   &Runtime{},
	"networks":  &Networks{},
	"readiness": &Readiness{},
}

// Phase is a step in a sandbox's life, as NRI reports it.
type Phase string

// The phases of a sandbox. NRI reports Running after CNI ADD and after the
// sandbox started, and never when CNI failed; Stopped before CNI DEL.
const (
	SandboxRunning Phase = "running"
	SandboxStopped Phase = "stopped"
	SandboxRemoved Phase = "removed"
	// SandboxPresent: it was running when the connection to NRI began (Synchronize).
	SandboxPresent Phase = "present"
)

// Sandbox is what the runtime reports about a pod sandbox. It is not ordered relative to the kernel's events.
type Sandbox struct {
	Phase Phase  `json:"phase"`
	ID    string `json:"id"`
	Pod   Pod    `json:"pod"`
	// Labels are the pod's, bounded in number and length.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations are only those that begin with "cniscope.dev/": others may hold
	// secrets (kubectl keeps whole manifests there).
	Annotations    map[string]string `json:"annotations,omitempty"`
	RuntimeHandler string            `json:"runtime_handler,omitempty"`
	IPs            []string          `json:"ips,omitempty"`
	// NetNS is the path of the sandbox's network namespace.
	NetNS string `json:"netns,omitempty"`
	// Trace is the context of the NRI call (containerd >= 2.2). It is something to link to, never
	// a parent, because it begins after CNI ended.
	Trace TraceContext `json:"trace,omitzero"`
}

// Above is a span of the runtime during which it may have set up or torn down the network of a
// sandbox: the parent of the CNI calls within its time, if their environment names none. A runtime
// exports a span when it is over, so this comes seconds after the events of the calls.
type Above struct {
	SandboxID string `json:"sandbox_id"`
	// Name is the span's.
	Name string `json:"name"`
	// Start and End are the span's, in nanoseconds of the node's monotonic clock.
	Start int64 `json:"start"`
	End   int64 `json:"end"`
	// Trace identifies the span, which is sampled: otherwise it would not have been exported.
	Trace TraceContext `json:"trace"`
}

// Runtime is the container runtime, sent once it is known and whenever it has changed.
type Runtime struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Readiness is whether the runtime considers the node's network ready, sent once it is known and
// whenever it has changed.
type Readiness struct {
	Ready bool `json:"ready"`
	// Reason is the runtime's explanation while it is not.
	Reason string `json:"reason,omitempty"`
	// Lacks is what has to come next until it is, and Missing the same in a sentence, with who should bring it;
	// empty where nobody looked.
	Lacks   Lack   `json:"lacks,omitempty"`
	Missing string `json:"missing,omitempty"`
	// Overdue is true if it has not been ready for longer than it should take.
	Overdue bool `json:"overdue,omitempty"`
}

// Lack is what a node's network is not ready for want of.
type Lack string

// The lacks, in the order in which a node gets over them.
const (
	LackRuntime       Lack = "runtime"           // the runtime does not answer
	LackFolder        Lack = "cni_folder"        // there is no CNI folder, or a file in it cannot be read
	LackConfiguration Lack = "cni_configuration" // nobody has written a network into it
	LackPlugin        Lack = "cni_plugin"        // the runtime does not take what is written: a plugin, a version
	LackStatus        Lack = "cni_status"        // the plugins themselves say no (STATUS): their agent
)

// Networks is the CNI configuration: all networks of the folder, in the order in which the runtime
// considers them. It is sent when first read and whenever it has changed.
type Networks struct {
	Networks []Network `json:"networks"`
}

// Network is one CNI network configuration.
type Network struct {
	Name       string `json:"name"`
	CNIVersion string `json:"cni_version,omitempty"`
	// File is the base name of the file it was read from.
	File    string   `json:"file,omitempty"`
	Plugins []Plugin `json:"plugins"`
	// Digest changes with what is configured, but for secrets: 16 bits, by a key that never leaves the node. Empty in
	// old recordings.
	Digest string `json:"digest,omitempty"`
}

// Plugin is one entry of a network's chain.
type Plugin struct {
	// Type is the name of the plugin's executable.
	Type string `json:"type"`
	// IPAM is the type of its IPAM delegate, if it has one.
	IPAM string `json:"ipam,omitempty"`
}

func (*Sandbox) Doer() Process   { return "" }
func (*Above) Doer() Process     { return "" }
func (*Runtime) Doer() Process   { return "" }
func (*Readiness) Doer() Process { return "" }
func (*Networks) Doer() Process  { return "" }
