package event

var nodeKinds = map[string]Body{
	"sandbox":   &Sandbox{},
	"above":     &Above{},
	"runtime":   &Runtime{},
	"networks":  &Networks{},
	"readiness": &Readiness{},
}

// Phase is a step in the life of a sandbox, as NRI reports it.
type Phase string

// The phases of a sandbox. NRI reports Running after CNI ADD and after the sandbox started, and never if CNI failed;
// Stopped before CNI DEL.
const (
	SandboxRunning Phase = "running"
	SandboxStopped Phase = "stopped"
	SandboxRemoved Phase = "removed"
	// SandboxPresent: it was running when the connection to NRI began (Synchronize).
	SandboxPresent Phase = "present"
)

// Sandbox is the runtime's report about a pod sandbox. It is not ordered relative to the kernel's events.
type Sandbox struct {
	Phase Phase  `json:"phase"`
	ID    string `json:"id"`
	Pod   Pod    `json:"pod"`
	// Labels are the pod's, bounded in number and length.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations are only those that begin with "cniscope.dev/": others may hold secrets (kubectl stores whole
	// manifests there).
	Annotations    map[string]string `json:"annotations,omitempty"`
	RuntimeHandler string            `json:"runtime_handler,omitempty"`
	IPs            []string          `json:"ips,omitempty"`
	NetNS          string            `json:"netns,omitempty"`
	// Trace is the context of the NRI call (containerd >= 2.2). It can only be a link, never a parent, because the
	// call begins after CNI ended.
	Trace TraceContext `json:"trace,omitzero"`
}

// Above is a span of the runtime that may contain the CNI calls of a sandbox: their parent, if their environment
// names none. It comes seconds after the calls, because a runtime exports a span when it ends.
type Above struct {
	SandboxID string `json:"sandbox_id"`
	Name      string `json:"name"`
	// Start and End are in ns of the node's monotonic clock.
	Start int64 `json:"start"`
	End   int64 `json:"end"`
	// Trace identifies the span, which is sampled: otherwise the runtime would not have exported it.
	Trace TraceContext `json:"trace"`
}

// Runtime is the container runtime, sent when it becomes known and after each change.
type Runtime struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Readiness is whether the runtime considers the node's network ready, sent when it becomes known and after each
// change.
type Readiness struct {
	Ready bool `json:"ready"`
	// Reason is the runtime's explanation if it is not ready.
	Reason string `json:"reason,omitempty"`
	// Lacks is the next missing step, and Missing the same as a sentence with its owner; empty if no check ran.
	Lacks   Lack   `json:"lacks,omitempty"`
	Missing string `json:"missing,omitempty"`
	// Overdue is true if the network has not been ready for longer than expected.
	Overdue bool `json:"overdue,omitempty"`
}

// Lack is a missing condition of a ready network.
type Lack string

// The lacks, in the order in which a starting node resolves them.
const (
	LackRuntime       Lack = "runtime"           // the runtime does not answer
	LackFolder        Lack = "cni_folder"        // the CNI directory is missing, or one of its files cannot be read
	LackConfiguration Lack = "cni_configuration" // the CNI directory has no network configuration
	LackPlugin        Lack = "cni_plugin"        // the runtime rejects the configuration: a plugin, a version
	LackStatus        Lack = "cni_status"        // the plugins' STATUS fails: their agent is not ready
)

// Networks is the CNI configuration: all networks of the directory, in the runtime's order. It is sent when first
// read and after each change.
type Networks struct {
	Networks []Network `json:"networks"`
}

// Network is one CNI network configuration.
type Network struct {
	Name       string `json:"name"`
	CNIVersion string `json:"cni_version,omitempty"`
	// File is the base name of its file.
	File    string   `json:"file,omitempty"`
	Plugins []Plugin `json:"plugins"`
	// Digest is a 16-bit fingerprint of the configuration without secrets, by a key that never leaves the node. Empty
	// in old recordings.
	Digest string `json:"digest,omitempty"`
}

// Plugin is one entry of a network's chain.
type Plugin struct {
	// Type is the name of the plugin's executable.
	Type string `json:"type"`
	// IPAM is the type of its IPAM plugin, if it has one.
	IPAM string `json:"ipam,omitempty"`
}

func (*Sandbox) Doer() Process   { return "" }
func (*Above) Doer() Process     { return "" }
func (*Runtime) Doer() Process   { return "" }
func (*Readiness) Doer() Process { return "" }
func (*Networks) Doer() Process  { return "" }
