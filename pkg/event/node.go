package event

// nodeKinds are the events of the node and its runtime, by the names of their kinds.
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
	// SandboxPresent: it runs, as NRI says when a connection begins (Synchronize).
	SandboxPresent Phase = "present"
)

// Sandbox is what the runtime says of a pod sandbox. It has no order against the
// events of the kernel.
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
	// Trace is the context of the NRI call: something to link to, never a parent,
	// because it begins after CNI ended (containerd >= 2.2).
	Trace TraceContext `json:"trace,omitzero"`
}

// Above says that the runtime recorded a span during which it may have set up or torn
// down the network of a sandbox: what the CNI calls within its time hang under, where
// their environment names no span. A runtime tells a span when that is over, so this
// comes after the events of the calls, by seconds.
type Above struct {
	SandboxID string `json:"sandbox_id"`
	// Name is the span's.
	Name string `json:"name"`
	// Start and End are the span's, in nanoseconds of the node's monotonic clock.
	Start int64 `json:"start"`
	End   int64 `json:"end"`
	// Trace names the span. It is sampled: otherwise it would not have been told.
	Trace TraceContext `json:"trace"`
}

// Runtime names the container runtime, when it is known or has changed.
type Runtime struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Readiness says whether the runtime takes the node's network to be ready, when that is
// known first and whenever it has changed.
type Readiness struct {
	Ready bool `json:"ready"`
	// Reason is the runtime's own, while it is not.
	Reason string `json:"reason,omitempty"`
}

// Networks is the CNI configuration, when it is read first and whenever it has
// changed: all networks of the folder, in the order the runtime considers them.
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
