package event

import "strings"

var nodeKinds = map[string]Body{
	"sandbox":    &Sandbox{},
	"above":      &Above{},
	"runtime":    &Runtime{},
	"registered": &Registered{},
	"networks":   &Networks{},
	"readiness":  &Readiness{},
	"programs":   &Programs{},
	"look":       &Look{},
}

// Phase is a step in a sandbox's life.
type Phase string

// Phases of a sandbox. Running comes after ADD, never if CNI failed; Stopped before DEL.
const (
	SandboxRunning Phase = "running"
	SandboxStopped Phase = "stopped"
	SandboxRemoved Phase = "removed"
	SandboxPresent Phase = "present" // when NRI connects (Synchronize)
)

// Sandbox is NRI's report about a pod sandbox, unordered relative to other events.
type Sandbox struct {
	Phase  Phase             `json:"phase"`
	ID     string            `json:"id"`
	Pod    Pod               `json:"pod"`
	Labels map[string]string `json:"labels,omitempty"`
	// Only PodTraceparent and "cniscope.dev/": others may hold secrets.
	Annotations    map[string]string `json:"annotations,omitempty"`
	RuntimeHandler string            `json:"runtime_handler,omitempty"`
	IPs            []string          `json:"ips,omitempty"`
	NetNS          string            `json:"netns,omitempty"`
	PID            uint32            `json:"pid,omitempty"`  // of its first process
	Late           int64             `json:"late,omitempty"` // ns from that start to this report, if long
	Plugins        []Actor           `json:"nri_plugins,omitempty"`
	Unasked        int64             `json:"nri_unasked,omitempty"`   // ns from the last look before their call
	Mounted        int64             `json:"netns_mounted,omitempty"` // wall ns
	// Of the NRI call: a link, because it begins after CNI.
	Trace TraceContext `json:"trace,omitzero"`
}

// PodTraceparent is KEP-5915's annotation.
const PodTraceparent = "tracing.k8s.io/traceparent"

// States of awaited NRI plugins.
const (
	NRIAnswered AgentState = "answered"
	NRICut      AgentState = "cut" // disconnected
	NRIExited   AgentState = "exited"
)

// Above is a span of the runtime, reported seconds later.
type Above struct {
	SandboxID string       `json:"sandbox_id"`
	Name      string       `json:"name"`
	Start     int64        `json:"start"` // monotonic ns
	End       int64        `json:"end"`
	Trace     TraceContext `json:"trace"`
}

// Whole reports a span of RunPodSandbox.
func (a *Above) Whole() bool {
	return a.Name == "cri.sandbox.run" || strings.HasSuffix(a.Name, "/RunPodSandbox")
}

// Runtime is the container runtime. Like Readiness and Networks, it is sent at first and after each change.
type Runtime struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Registered reports that the runtime of this PID accepted cniscope's NRI plugin, and will report its sandboxes.
type Registered struct {
	PID uint32 `json:"pid"`
	// Since is the runtime's start, in monotonic ns; 0 if not readable.
	Since int64 `json:"since,omitempty"`
}

// Readiness is the runtime's network readiness.
type Readiness struct {
	Ready  bool   `json:"ready"`
	Reason string `json:"reason,omitempty"`
	// Lacks is the next missing condition, Missing a sentence about it.
	Lacks   Lack   `json:"lacks,omitempty"`
	Missing string `json:"missing,omitempty"`
	Overdue bool   `json:"overdue,omitempty"`
}

// Lack is a missing condition of a ready network.
type Lack string

// Lacks, in the order of a node's start.
const (
	LackRuntime       Lack = "runtime"
	LackFolder        Lack = "cni_folder"        // missing or unreadable
	LackConfiguration Lack = "cni_configuration" // no network in it
	LackPlugin        Lack = "cni_plugin"        // rejected by the runtime
	LackStatus        Lack = "cni_status"        // STATUS fails: the agent is not ready
)

// Networks are all networks of the CNI directory, in the runtime's order.
type Networks struct {
	Networks []Network `json:"networks"`
}

// Network is one CNI network configuration.
type Network struct {
	Name       string   `json:"name"`
	CNIVersion string   `json:"cni_version,omitempty"`
	File       string   `json:"file,omitempty"`
	Plugins    []Plugin `json:"plugins"`
	// A 16-bit fingerprint without secrets, keyed per node. Old recordings lack it.
	Digest string `json:"digest,omitempty"`
}

// Plugin is an entry of a chain.
type Plugin struct {
	Type string `json:"type"`
	IPAM string `json:"ipam,omitempty"`
}

func (*Sandbox) Doer() Process    { return "" }
func (*Above) Doer() Process      { return "" }
func (*Runtime) Doer() Process    { return "" }
func (*Registered) Doer() Process { return "" }
func (*Readiness) Doer() Process  { return "" }
func (*Networks) Doer() Process   { return "" }
