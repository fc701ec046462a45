// Package fact holds what is known about a node, the marks of CNIs, and cleaning of foreign text. It does no I/O.
package fact

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/leak"
)

// Options of an examination.
type Options struct {
	Node string
	// NRISocket may be empty.
	Address, NRISocket string
	ConfDir            string        // used if the runtime does not answer
	RunDir             string        // of a running cniscope's control socket
	Kubelet            string        // address of /healthz; default DefaultKubelet
	Hung               time.Duration // longer calls are findings
	Leak               time.Duration // older leaks are findings
	// Endpoint is the OTLP endpoint, empty for none; Send sends it a test span.
	Endpoint string
	Send     func(context.Context) error
	Patience time.Duration // per answer; default DefaultPatience
	Wait     time.Duration // for a gate
	// Chains lists chains, at least those that matter; nil if this process may.
	Chains func(context.Context) ([]Chain, error)
}

// Of is a fact, or why it is unknown.
type Of[T any] struct {
	Value T
	Err   error
}

// Facts are what the checks know.
type Facts struct {
	Options Options
	Now     time.Time
	// Contained means that we run in a pod's container, which sees only mounted files.
	Contained bool

	Runtime    Of[Runtime]
	CRI        Of[CRI]
	Containers Of[[]Container]
	Held       Of[leak.Look] // what sandboxes hold, and which sandboxes exist
	Gone       Of[[]Gone]
	Folder     Of[Folder]
	Binaries   Of[[]Binary]
	Processes  Of[[]Process]
	Kubelet    Of[Health]
	DNS        Of[DNS]
	Chains     Of[[]Chain]
	LB         Of[LB]
	Network    Of[Network]
	Forwarding Of[Forwarding]
	Locks      Of[[]Lock]
	Agents     Of[[]Agent]
	Scope      Of[Scope] // or Err is control.ErrNotRunning
	NRI        Of[NRI]
	Kernel     Of[Kernel]
	Sent       Of[struct{}] // no error: a test span was accepted
	Clock      Of[Clock]
	// OnWindows means a Windows node. The facts below exist only there.
	OnWindows bool
	HNS       Of[string] // state of the Host Network Service, such as "running"; empty without it
	Pipes     Of[[]string]
	Trial     Of[Trial]
}

// ErrElsewhere means that the node's system lacks the fact.
var ErrElsewhere = errors.New("it is not available on Windows")

// Trial is the observation of a started process.
type Trial struct {
	Source string        // "etw" or "snapshots"
	Why    string        // why Source is not "etw"
	Took   time.Duration // from the process's start to its report
	// Unread is why the process's environment could not be read.
	Unread string
}

// CRI is CRI's verbose status.
type CRI struct {
	Ready         bool
	ReadyReason   string
	Network       bool
	NetworkReason string
	LastLoad      string
	ConfDir       string
	BinDirs       []string
	MaxConf       int
	// Told means that the runtime reported Loaded; otherwise it is read from the CNI directory. It lacks containerd's
	// own lo.
	Loaded []Loaded
	Told   bool
	// Said is the source of ConfDir and BinDirs, empty for defaults.
	Said string
	// Default is the name of CRI-O's default network; empty for the first network.
	Default       string
	NeedsLoopback bool // containerd runs the plugin loopback for each pod
}

// Loaded is a loaded network.
type Loaded struct {
	event.Network
	Digest    string
	Delegates []string // delegated plugins
	Asks      []Asked
	// Subnets of host-local's ranges.
	Subnets     []netip.Prefix
	Bridges     []string
	Masters     []string
	Kubeconfigs []string
	DataDirs    []string // lease directories of host-local, besides the default
}

// OnLink lists the plugins whose pods use the node's own link and network.
var OnLink = []string{"macvlan", "ipvlan", "vlan", "host-device", "sriov"}

// Winners are the networks that the runtime would load now.
func Winners(f *Facts) []event.Network {
	n := f.Folder.Value.Networks
	if f.CRI.Err != nil {
		return n[:min(1, len(n))]
	}
	if i := slices.IndexFunc(n, func(n event.Network) bool { return n.Name == f.CRI.Value.Default }); i >= 0 {
		return n[i : i+1]
	}
	if most := f.CRI.Value.MaxConf; most > 0 {
		n = n[:min(most, len(n))]
	}
	return n
}

// Networks returns the event.Network of each loaded network.
func Networks(loaded []Loaded) (all []event.Network) {
	for _, l := range loaded {
		all = append(all, l.Network)
	}
	return all
}

// Folder is the CNI configuration directory.
type Folder struct {
	Dir       string
	Networks  []event.Network   // in the runtime's order
	Digests   map[string]string // of .conflist files
	Problems  []string
	Blocking  string // first invalid file among the used ones
	NotJSON   bool
	Other     []string // ignored files
	Missing   bool
	Made      time.Time // zero if unknown
	Elsewhere []string  // in other directories, if this has none
}

// Binary is a plugin's program.
type Binary struct {
	Name, Network string
	Wrong         *event.Program
}

// Container is a network container's latest attempt.
type Container struct {
	Namespace, Pod, Name, ID   string
	State                      string // CRI's state, in lower case
	ExitCode                   int32
	Reason                     string
	Created, Started, Finished time.Time
	Restarts                   int
	LastLine, LineBefore       string // of this attempt's log, and of the one before
	// Mounts are the CNI directories that it mounts, Proxy means kube-proxy, Owner is the pod's CNI.
	Mounts       []string
	Proxy        bool
	Owner        string
	SandboxReady bool      // its pod is meant to run
	Settings     []Setting // options of Cilium's agent
}

// String names the container and its pod.
func (c Container) String() string {
	return Sayf("container %s of pod %s/%s", c.Name, c.Namespace, c.Pod)
}

// Writes reports whether it may write the CNI folders.
func (c Container) Writes() bool { return len(c.Mounts) > 0 || c.Owner != "" }

// Setting is an option and its source.
type Setting struct{ Key, Value, From string }

// Process belongs to the node's network.
type Process struct {
	PID      int
	Name     string // of its program, if visible
	File     string
	Command  string // CNI_COMMAND
	Plugin   bool
	HostNet  bool // in our network namespace
	Start    time.Time
	LastLine string // of an agent's log
	// Container is its container's id, if any.
	Container string
	Settings  []Setting
}

// Health is kubelet's answer.
type Health struct {
	Address string
	Running bool
	Status  int
	Body    string
	Err     string
}

// DNS is pods' first server: Said is its answer if an error.
type DNS struct{ Server, Name, Err, Said string }

// Chain is a firewall chain.
type Chain struct {
	Backend string // "nftables" or "iptables-legacy"
	Family  string
	Table   string
	Name    string
	// Drops means a base chain of forwarded packets that drops, by the rule Handle after Rules or by policy.
	Drops  bool
	Handle uint64
	Rules  int // of chains that matter
}

// Matters reports whether pods depend on the chain: it drops, or a reference plugin makes it.
func (c Chain) Matters() bool {
	return c.Drops || strings.HasPrefix(c.Name, "CNI-") || c.Name == "hostports" || c.Name == "masq_checks"
}

// Gone is a living pod's attachment, and what of it is gone from the node.
type Gone struct {
	leak.Attachment
	Obstacles []event.Obstacle
}

// LB is Cilium's service load balancing.
type LB struct {
	// Programs on our cgroup, and on our interfaces.
	Socket, Device      []Attached
	Services, NodePorts int // entries in service maps
	Maps                []string
}

// Forwarding is what forwarding of pods' packets needs.
type Forwarding struct {
	// Switches has paths below /proc/sys/net, such as "ipv4/ip_forward" and "ipv4/conf/cni0/forwarding".
	Switches  map[string]bool
	Default   []string // interfaces of default routes
	Tables    []Table
	Unbridged map[string]string // by family, why rules miss bridged packets
}

// Table is a kernel table; a Limit of 0 is unknown.
type Table struct {
	Name, Option string // Option is the sysctl that sets the limit
	Used, Limit  int
}

// Full means less than 5 % free.
func (t Table) Full() bool { return t.Limit > 0 && t.Used*100 >= t.Limit*95 }

// Attached is a BPF program and its target.
type Attached struct{ Program, To string }

// Network is the node's own network.
type Network struct {
	Links  []Link
	Routes []Route
}

// Link is an interface.
type Link struct {
	Name, Type string
	Addresses  []netip.Prefix
}

// Route is a route other than the default.
type Route struct {
	Prefix  netip.Prefix
	Link    string
	Learned bool // from DHCP or a router
}

// Lock is a known lock with holder and waiters.
type Lock struct {
	File       string
	Holder     string
	PID        int
	Waiters    []string
	WaiterPIDs []int
	Since      time.Duration // how long it was watched
}

// Scope is a running cniscope.
type Scope struct {
	Node   control.Node
	Calls  []control.Call
	Recent control.Recent
}

// NRI is the state of NRI's socket.
type NRI struct {
	Socket    bool
	Listening bool
	Sure      bool // Listening is known
}

// Kernel is what the probe depends on. An empty reason means no obstacle.
type Kernel struct {
	Release  string
	BTF      string // why it is unreadable
	Features []Feature
	// Functions is why kernel functions are not traced.
	Functions string
	Lockdown  string
	Lacking   []string // missing capabilities for BPF programs
	// Connector is why the process connector is unusable.
	Connector string
	// First is why process 1's namespaces are unreadable.
	First string
}

// Feature is a kernel feature that the probe uses.
type Feature struct {
	Name   string
	For    string
	Needed bool // cniscope sees nothing without it
	There  bool
}

// Clock is the kernel clock's state.
type Clock struct {
	Synchronised bool
	MaxError     time.Duration
}
