// Package fact holds what is known about a node: values that pkg/doctor/gather fills in and the checks of pkg/doctor
// read, the marks of CNIs, and cleaning of text from elsewhere. It does no I/O.
package fact

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/leak"
	"github.com/cniscope/cniscope/pkg/redact"
	"github.com/cniscope/cniscope/pkg/text"
)

// Options of an examination.
type Options struct {
	Node string // for the report
	// Address is the runtime's socket. NRISocket is empty if NRI is not used.
	Address, NRISocket string
	ConfDir            string        // CNI folder, if containerd does not answer
	RunDir             string        // of a running cniscope
	Kubelet            string        // host and port of kubelet's healthz; default DefaultKubelet
	Hung               time.Duration // calls in progress for longer are findings
	Leak               time.Duration // what a sandbox that is gone holds for longer is a finding
	// Endpoint is the destination of spans, or empty. Send sends one test span there.
	Endpoint string
	Send     func(context.Context) error
	Patience time.Duration // bounds each answer; default DefaultPatience
}

// Of is a fact, or the reason why it is unknown.
type Of[T any] struct {
	Value T
	Err   error
}

// Facts are everything that the checks know.
type Facts struct {
	Options Options
	Now     time.Time
	// Contained means that we run in a pod's container and see only mounted files of the node.
	Contained bool

	Runtime    Of[Runtime]
	CRI        Of[CRI]
	Containers Of[[]Container]
	Held       Of[leak.Look] // networks and addresses of sandboxes, and which of them exist
	Folder     Of[Folder]
	Binaries   Of[[]Binary] // programs that the networks need
	Processes  Of[[]Process]
	Kubelet    Of[Health]
	Chains     Of[[]Chain]
	LB         Of[LB]
	Network    Of[Network]
	Forwarding Of[Forwarding]
	Locks      Of[[]Lock]
	Agents     Of[[]Agent] // of the loaded networks' plugins
	Scope      Of[Scope]   // or control.ErrNotRunning
	NRI        Of[NRI]
	Kernel     Of[Kernel]
	Sent       Of[struct{}] // a test span was taken
	Clock      Of[Clock]
	// OnWindows means a Windows node, which alone has the three below.
	OnWindows bool
	HNS       Of[string]   // state of the Host Network Service, such as "running"; empty if it does not exist
	Pipes     Of[[]string] // names of all pipes
	Trial     Of[Trial]
}

// ErrElsewhere is the error of a fact that the node's system lacks.
var ErrElsewhere = errors.New("there is nothing of the kind on Windows, or it is not told")

// Trial is the observation of a process started for it.
type Trial struct {
	Source string        // "etw" or "snapshots"
	Why    string        // reason why it is not "etw"
	Took   time.Duration // from start to report
	// Unread is the reason why its environment was not read.
	Unread string
}

// CRI is CRI's verbose status.
type CRI struct {
	Ready         bool
	ReadyReason   string
	Network       bool
	NetworkReason string
	LastLoad      string // last error of loading networks
	ConfDir       string
	BinDirs       []string
	MaxConf       int
	// Loaded lists its networks without containerd's own for lo. Told means that it reported them; otherwise they are
	// those in its folder.
	Loaded []Loaded
	Told   bool
	// Said is where the folders' names come from, if Told is false.
	Said string
	// Default is CRI-O's network; empty for the first.
	Default       string
	NeedsLoopback bool // containerd runs the loopback plugin for each pod
}

// Loaded is a loaded network.
type Loaded struct {
	event.Network
	Digest    string   // of its configuration's text
	Delegates []string // plugins that its plugins run
	Asks      []Asked  // what its plugins ask
	// Subnets are those from which host-local leases addresses, Bridges their interfaces.
	Subnets  []netip.Prefix
	Bridges  []string
	DataDirs []string // host-local's directories, besides the default
}

// Winners returns the networks that the runtime would load now.
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

// Networks returns the networks alone.
func Networks(loaded []Loaded) (all []event.Network) {
	for _, l := range loaded {
		all = append(all, l.Network)
	}
	return all
}

// Folder is the CNI configuration directory on disk.
type Folder struct {
	Dir      string
	Networks []event.Network   // readable ones, in the runtime's order
	Digests  map[string]string // of .conflist files' text
	Problems []string
	Blocking string   // unreadable file among the used ones
	Other    []string // files that the runtime ignores
	Missing  bool     // it does not exist
}

// Binary is a needed program of a plugin.
type Binary struct {
	Name, Network string
	Wrong         *event.Program // why it cannot be started; nil if it can
}

// Container is the latest attempt of a container that belongs to the network.
type Container struct {
	Namespace, Pod, Name, ID   string
	State                      string // CRI's, in lower case: running, exited, created, unknown
	ExitCode                   int32
	Reason                     string
	Created, Started, Finished time.Time
	Restarts                   int
	LastLine                   string
	// Mounts are the host's CNI folders that it mounts. Proxy means kube-proxy. Owner is the CNI of its pod.
	Mounts       []string
	Proxy        bool
	Owner        string
	SandboxReady bool      // its pod is meant to run
	Settings     []Setting // of Cilium, from arguments and mounted configuration
}

// Writes reports whether a container takes part in writing the CNI folders.
func (c Container) Writes() bool { return len(c.Mounts) > 0 || c.Owner != "" }

// Setting is an option and its source.
type Setting struct{ Key, Value, From string }

// Process belongs to the node's network.
type Process struct {
	PID      int
	Name     string // of its file, if visible
	File     string
	Command  string // a plugin's CNI_COMMAND
	Plugin   bool
	HostNet  bool // it is in our network namespace
	Start    time.Time
	LastLine string // of an agent's log, if its standard error is a file
	// Container is its container's id, or empty.
	Container string
	Settings  []Setting
}

// Health is kubelet's answer.
type Health struct {
	Address string
	Running bool // a kubelet process exists
	Status  int
	Body    string
	Err     string
}

// Chain is a chain of the firewall's rules.
type Chain struct {
	Backend string // "nftables" or "iptables-legacy"
	Family  string
	Table   string
	Name    string
	// Drops means a base chain of forwarded packets with policy drop; it then has Rules rules.
	Drops bool
	Rules int
}

// LB is Cilium's service load balancing in the kernel.
type LB struct {
	// Socket lists programs on our cgroup, Device those on our interfaces.
	Socket, Device      []Attached
	Services, NodePorts int // entries in the service maps
	Maps                []string
}

// Forwarding is what the kernel needs to forward packets of pods.
type Forwarding struct {
	// Switches maps IPv4 switches, by their path below /proc/sys/net such as "ipv4/ip_forward", to their state.
	Switches map[string]bool
	// Tables refuse entries when they are full.
	Tables []Table
}

// Table is a table of the kernel. A Limit of 0 is unknown.
type Table struct {
	Name, Option string // Option is the sysctl that limits it
	Used, Limit  int
}

// Full reports whether less than 5 % is free.
func (t Table) Full() bool { return t.Limit > 0 && t.Used*100 >= t.Limit*95 }

// Attached is a BPF program and what it is attached to.
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

// Lock is a lock on a known file with its holder and waiters.
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

// Kernel is what the probe depends on. An empty reason means that there is no obstacle.
type Kernel struct {
	Release  string
	BTF      string // why BTF cannot be read
	Features []Feature
	// Functions is why plugins' work is not traced by kernel functions.
	Functions string
	Lockdown  string
	Lacking   []string // capabilities for BPF programs that this process lacks
	// Connector is why this process cannot use the process connector.
	Connector string
	// First is why the namespaces of process 1 cannot be read.
	First string
}

// Feature is a kernel feature that the probe uses.
type Feature struct {
	Name   string
	For    string
	Needed bool // without it cniscope sees nothing
	There  bool
}

// Clock is the kernel's.
type Clock struct {
	Synchronised bool
	MaxError     time.Duration
}

// Listed bounds a list of one kind.
const Listed = 8

// Cap returns the first Listed lines, and the number of the others.
func Cap(lines []string) []string {
	if len(lines) <= Listed {
		return lines
	}
	return append(lines[:Listed:Listed], Sayf("and %d more", len(lines)-Listed))
}

// List joins up to Listed names with commas.
func List(all []string) string {
	more := ""
	if len(all) > Listed {
		more = Sayf(" and %d more", len(all)-Listed)
		all = all[:Listed]
	}
	safe := make([]string, len(all))
	for i, s := range all {
		safe[i] = Clean(s)
	}
	return strings.Join(safe, ", ") + more
}

// Unasked reports whether an error means a lack of permission rather than a fault.
func Unasked(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, context.Canceled) ||
		status.Code(err) == codes.PermissionDenied
}

// Clean makes text from elsewhere safe to print.
func Clean(s string) string { return text.Clean(s, text.Bound) }

// Foreign redacts a text of the container runtime or of kubelet, which may repeat a plugin's error. The names stay.
func Foreign(s string, names ...string) string {
	told := redact.Ours()
	told.Name(names...)
	return Clean(told.Said(s))
}

// Sayf is fmt.Sprintf with cleaned text arguments.
func Sayf(format string, args ...any) string {
	for i, a := range args {
		switch a := a.(type) {
		case string:
			args[i] = Clean(a)
		case error:
			args[i] = Clean(a.Error())
		}
	}
	return fmt.Sprintf(format, args...)
}
