// Package fact is what is known about a node before it is judged: values that pkg/doctor/gather
// fills in and the checks of pkg/doctor read, what tells one CNI from another, and how text
// from elsewhere is made safe. It does no I/O.
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

// Options say what is looked at.
type Options struct {
	Node string // for the report
	// Address is the runtime's socket, NRISocket its socket for NRI plugins; the latter is
	// empty where cniscope is not to use NRI.
	Address, NRISocket string
	ConfDir            string        // CNI folder, where containerd cannot be asked
	RunDir             string        // where a running cniscope listens
	Kubelet            string        // host and port of kubelet's healthz; default DefaultKubelet
	Hung               time.Duration // how long a call may be under way before it is a finding
	Leak               time.Duration // how old what a sandbox that is gone holds must be to be a finding
	// Endpoint names where spans go; empty where nowhere. Send sends one test span there.
	Endpoint string
	Send     func(context.Context) error
	Patience time.Duration // how long each answer may take; default DefaultPatience
}

// Of is a fact: what was found out, or why it was not.
type Of[T any] struct {
	Value T
	Err   error
}

// Facts are all that the checks know.
type Facts struct {
	Options Options
	Now     time.Time
	// Contained: we run in a pod's container, which has only those files of the node that are mounted into it.
	Contained bool

	Runtime    Of[Runtime]
	CRI        Of[CRI]
	Containers Of[[]Container]
	Held       Of[leak.Look] // networks and addresses that sandboxes have, and who of them is there
	Folder     Of[Folder]
	Binaries   Of[[]Binary] // programs that the networks need
	Processes  Of[[]Process]
	Kubelet    Of[Health]
	Chains     Of[[]Chain]
	LB         Of[LB]
	Network    Of[Network]
	Forwarding Of[Forwarding]
	Locks      Of[[]Lock]
	Agents     Of[[]Agent] // whom the loaded networks' plugins ask
	Scope      Of[Scope]   // control.ErrNotRunning where there is none
	NRI        Of[NRI]
	Kernel     Of[Kernel]
	Sent       Of[struct{}] // a test span was taken
	Clock      Of[Clock]
	// OnWindows: the node is one of Windows, and only such a node has the three below.
	OnWindows bool
	HNS       Of[string]   // the state of the Host Network Service, as "running"; empty if there is none
	Pipes     Of[[]string] // the names of all pipes
	Trial     Of[Trial]
}

// ErrElsewhere is the error of a fact that the node's system does not have.
var ErrElsewhere = errors.New("there is nothing of the kind on Windows, or it is not told")

// Trial is how a process was seen that was started to be seen.
type Trial struct {
	Source string        // by what means: "etw" or "snapshots"
	Why    string        // why not by the first
	Took   time.Duration // from its start until it was told of
	// Unread is why its environment was not read; empty if it was.
	Unread string
}

// CRI is what CRI's verbose status tells.
type CRI struct {
	Ready         bool
	ReadyReason   string
	Network       bool
	NetworkReason string
	LastLoad      string // last error of loading networks; empty where that went well
	ConfDir       string
	BinDirs       []string
	MaxConf       int
	// Loaded are its networks, without containerd's own for lo. Told: it says so itself; else they are what
	// its folder has, since only containerd tells.
	Loaded []Loaded
	Told   bool
	// Said is where a runtime that does not tell names its folders.
	Said string
	// Default is the network that CRI-O is told to use; empty for the first.
	Default       string
	NeedsLoopback bool // containerd runs the loopback plugin for every pod
}

// Loaded is a network as containerd has it.
type Loaded struct {
	event.Network
	Digest    string   // of its configuration's text, for comparison with the file
	Delegates []string // plugins that its plugins run
	Asks      []Asked  // whom its plugins ask, by their configuration or by what is known of them
	// Subnets are what host-local gives to pods here, Bridges the interfaces they are on.
	Subnets  []netip.Prefix
	Bridges  []string
	DataDirs []string // where host-local keeps its lock, besides the usual place
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

// Folder is the CNI configuration folder as it is on disk.
type Folder struct {
	Dir      string
	Networks []event.Network   // those that can be read, in the order of the runtime
	Digests  map[string]string // of the text of .conflist files, by file
	Problems []string          // what is wrong with it, in words
	Blocking string            // file that cannot be read, before enough that can
	Other    []string          // files that the runtime does not look at
	Missing  bool              // there is no such folder
}

// Binary is a plugin's program that is needed, and where it was looked for.
type Binary struct {
	Name, Network string
	Wrong         *event.Program // why it cannot be started; nil where nothing speaks against it
}

// Container is one of the CRI that has to do with the network: its latest attempt.
type Container struct {
	Namespace, Pod, Name, ID   string
	State                      string // CRI's, in lower case: running, exited, created, unknown
	ExitCode                   int32
	Reason                     string
	Created, Started, Finished time.Time
	Restarts                   int
	LastLine                   string
	// Mounts are the CNI folders of the host that it mounts, Proxy is kube-proxy itself;
	// Owner is the CNI that its pod is of.
	Mounts       []string
	Proxy        bool
	Owner        string
	SandboxReady bool      // its pod is meant to run
	Settings     []Setting // what its arguments and mounted configuration say of Cilium
}

// Writes reports whether a container has its part in writing the CNI folders.
func (c Container) Writes() bool { return len(c.Mounts) > 0 || c.Owner != "" }

// Setting is an option that was read, and where.
type Setting struct{ Key, Value, From string }

// Process is one that has to do with the node's network.
type Process struct {
	PID      int
	Name     string // of its file, as far as that can be seen
	File     string
	Command  string // CNI_COMMAND, for a plugin
	Plugin   bool
	HostNet  bool // it is in our network namespace
	Start    time.Time
	LastLine string // of an agent's log, where its standard error is a file
	// Container is the id of the container that it runs in; empty if in none.
	Container string
	Settings  []Setting
}

// Health is kubelet's answer.
type Health struct {
	Address string
	Running bool // there is a kubelet process
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
	// Drops: it is a base chain of forwarded packets whose policy drops them; Rules is how many rules it has then.
	Drops bool
	Rules int
}

// LB is Cilium's service load balancing in the kernel.
type LB struct {
	// Socket are programs on our cgroup, Device those on our interfaces.
	Socket, Device      []Attached
	Services, NodePorts int // entries in the service maps
	Maps                []string
}

// Forwarding is what the kernel needs to pass on packets of pods. A value of 0 is not known, except Switches.
type Forwarding struct {
	// Switches are those of IPv4 by their path below /proc/sys/net, as "ipv4/ip_forward", and whether they are on.
	Switches map[string]bool
	// Tables are the kernel's tables that refuse entries when they are full.
	Tables []Table
}

// Table is how many entries a table of the kernel has and may have.
type Table struct {
	Name, Option string // Option is the sysctl that limits it
	Used, Limit  int
}

// Full reports whether there is no room to speak of: less than 5 %.
func (t Table) Full() bool { return t.Limit > 0 && t.Used*100 >= t.Limit*95 }

// Attached is a BPF program, and what it is attached to.
type Attached struct{ Program, To string }

// Network is the node's own addresses.
type Network struct {
	Links  []Link
	Routes []Route
}

// Link is an interface.
type Link struct {
	Name, Type string
	Addresses  []netip.Prefix
}

// Route is a route that is no default.
type Route struct {
	Prefix  netip.Prefix
	Link    string
	Learned bool // from DHCP or a router
}

// Lock is a lock on a known file, who holds it and who waits.
type Lock struct {
	File       string
	Holder     string
	PID        int
	Waiters    []string
	WaiterPIDs []int
	Since      time.Duration // how long that has been watched
}

// Scope is a running cniscope.
type Scope struct {
	Node   control.Node
	Calls  []control.Call
	Recent control.Recent
}

// NRI is containerd's NRI as the file system shows it.
type NRI struct {
	Socket    bool
	Listening bool
	Sure      bool // seen not to be listened on, not just out of sight
}

// Kernel is what the probe depends on.
type Kernel struct {
	Release  string
	BTF      string // why not, empty where it can be read
	Features []Feature
	// Functions is why what plugins do is not reached by the kernel's functions, empty where that is tried.
	Functions string
	Lockdown  string
	Lacking   []string // capabilities for BPF programs that this process does not have
	// Connector is why the process connector cannot be used by this process, empty where it can.
	Connector string
	// First is why the namespaces of the first process cannot be read, empty where they can.
	First string
}

// Feature is something of the kernel's that the probe uses.
type Feature struct {
	Name   string
	For    string
	Needed bool // without it nothing is seen at all
	There  bool
}

// Clock is the kernel's.
type Clock struct {
	Synchronised bool
	MaxError     time.Duration
}

// Listed is how many things of one kind are named.
const Listed = 8

// List joins names with commas, the first Listed of them.
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

// Unasked reports whether an error means that we may not ask, rather than that something is broken.
func Unasked(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, context.Canceled) || status.Code(err) == codes.PermissionDenied
}

// Clean makes text from elsewhere safe to show.
func Clean(s string) string { return text.Clean(s, text.Bound) }

// Foreign returns what may leave of a text of the container runtime or of kubelet, which may repeat the error of a
// plugin. The names may stay.
func Foreign(s string, names ...string) string {
	told := redact.Ours()
	told.Name(names...)
	return Clean(told.Said(s))
}

// Sayf is fmt.Sprintf with its text arguments made safe.
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
