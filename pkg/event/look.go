package event

import (
	"slices"
	"strings"
	"time"
)

// LookPatience is how long a failed call waits for its look.
const LookPatience = 500 * time.Millisecond

// LateReport is when NRI reports a sandbox late.
const LateReport = time.Second

// Look is what was found on the node about a pod's network.
type Look struct {
	ContainerID string `json:"container_id"`
	Found       *Found `json:"found,omitempty"`
	// NetNS is empty in older recordings.
	NetNS Namespace `json:"netns,omitzero"`
	// Connected means that the first connection came.
	Connected bool `json:"connected,omitempty"`
	// Tries is nil without the pod's namespace.
	Tries     *Tries     `json:"tries,omitempty"`
	Obstacles []Obstacle `json:"obstacles,omitempty"`
	// most first
	Drops []Drop `json:"drops,omitempty"`
}

// Drop is packets of a waiting pod, dropped by one kernel function.
type Drop struct {
	// Reason is without SKB_DROP_REASON_; empty before Linux 5.17.
	Reason string `json:"reason,omitempty"`
	Place  string `json:"place,omitempty"`
	// Back is to the pod, InPod in its namespace.
	Back   bool   `json:"back,omitempty"`
	InPod  bool   `json:"in_pod,omitempty"`
	Device string `json:"device,omitempty"`
	Peer   string `json:"peer,omitempty"`
	Count  uint64 `json:"count"`
	// Hook is netfilter's; one of Chains dropped.
	Hook   string  `json:"hook,omitempty"`
	Chains []Chain `json:"chains,omitempty"`
	// Program is the only one there.
	Program   string `json:"program,omitempty"`
	ProgramID uint32 `json:"program_id,omitempty"`
	// Neighbor is of ARP or NDP; Guarded: a program may take these.
	Neighbor bool `json:"neighbor,omitempty"`
	Guarded  bool `json:"guarded,omitempty"`
}

// Unresolved waited for an answer to ARP or NDP.
func (d Drop) Unresolved() bool {
	if d.Reason != "" && d.Reason != "NOT_SPECIFIED" {
		return d.Reason == "NEIGH_FAILED"
	}
	return slices.ContainsFunc(
		[]string{"neigh_invalidate", "__neigh_event_send", "arp_error_report", "ndisc_error_report"},
		func(f string) bool { return strings.HasPrefix(d.Place, f) })
}

// Doer returns nothing, because cniscope looked.
func (*Look) Doer() Process { return "" }

// Tries are the attempts to connect since a network namespace was created.
type Tries struct {
	Opened     uint64 `json:"opened,omitempty"`     // connections (ActiveOpens)
	Failed     uint64 `json:"failed,omitempty"`     // of these (AttemptFails)
	SYNs       uint64 `json:"syns,omitempty"`       // repeated, and answers to them (TCPSynRetrans)
	Unroutable uint64 `json:"unroutable,omitempty"` // OutNoRoutes
	Unreached  uint64 `json:"unreached,omitempty"`  // InDestUnreachs, from ICMP
	Unresolved uint64 `json:"unresolved,omitempty"` // without a neighbor's answer
	Asked      uint64 `json:"asked,omitempty"`      // UDP datagrams sent
	Answered   uint64 `json:"answered,omitempty"`   // UDP datagrams received
	// Silent are neighbors without an ARP answer; no file has IPv6's.
	Silent []string `json:"silent,omitempty"`
}

// Unanswered reports whether packets had no answer.
func (t *Tries) Unanswered() bool {
	return t != nil && (t.SYNs > 0 || t.Asked > t.Answered || t.Unresolved > 0)
}

// ObstacleKind is the kind of an Obstacle.
type ObstacleKind string

// Kinds of obstacles.
const (
	ObstacleSwitch ObstacleKind = "switch" // a sysctl of forwarding is 0
	ObstacleTable  ObstacleKind = "table"  // a kernel table is full
	ObstaclePolicy ObstacleKind = "policy" // a chain drops forwarded packets that no rule accepts

	ObstacleRoute    ObstacleKind = "route"    // a route, or a rule of routing
	ObstacleFilter   ObstacleKind = "filter"   // a packet filter's chain
	ObstacleNeighbor ObstacleKind = "neighbor" // a permanent neighbor entry
	ObstacleReused   ObstacleKind = "reused"   // of an earlier pod
	ObstacleProxy    ObstacleKind = "proxy"    // proxy ARP
	ObstacleGone     ObstacleKind = "gone"     // an address, or a port of a bridge
)

// Obstacle is a state of the node in which packets of pods are dropped.
type Obstacle struct {
	Kind ObstacleKind `json:"kind"`
	// Name is a sysctl, a table, a chain, or the pod's thing; for neighbors and proxies a clause.
	Name string `json:"name"`
	// Option is a sysctl, or ip neigh's entry.
	Option string `json:"option,omitempty"`
	Used   int    `json:"used,omitempty"`
	Limit  int    `json:"limit,omitempty"`
	// Chain is set if it is a policy.
	Chain *Chain `json:"chain,omitempty"`
}

// Chain is a base chain.
type Chain struct {
	// Backend is "nftables", "iptables-legacy" or "conntrack".
	Backend string `json:"backend"`
	Family  string `json:"family"`
	Table   string `json:"table"`
	Name    string `json:"name"`
	Rules   int    `json:"rules,omitempty"`
	// Handle is of the rule after Rules that drops the rest; 0 if the policy does.
	Handle uint64 `json:"handle,omitempty"`
}

// String returns the chain's full name.
func (c *Chain) String() string { return c.Backend + " " + c.Family + " " + c.Table + " " + c.Name }

// Gone returns the obstacle of a missing thing: "route 10.22.0.5/32", "chain CNI-DN-07ab".
func Gone(thing string) Obstacle {
	kinds := map[string]ObstacleKind{"route": ObstacleRoute, "rule": ObstacleRoute, "chain": ObstacleFilter}
	kind, _, _ := strings.Cut(thing, " ")
	if k, known := kinds[kind]; known {
		return Obstacle{Kind: k, Name: thing}
	}
	return Obstacle{Kind: ObstacleGone, Name: thing}
}

// OfPod reports whether the obstacle concerns one pod.
func (o Obstacle) OfPod() bool {
	return slices.Contains([]ObstacleKind{
		ObstacleRoute, ObstacleFilter, ObstacleNeighbor, ObstacleGone,
		ObstacleReused, ObstacleProxy,
	}, o.Kind)
}

// Certain reports whether no packet of its families gets past the obstacle.
func (o Obstacle) Certain() bool { return o.Chain == nil || o.Chain.Rules == 0 }

// Stops reports whether the obstacle is one for "ip" or "ip6".
func (o Obstacle) Stops(family string) bool {
	switch {
	case o.Kind == ObstacleSwitch:
		return strings.HasPrefix(o.Name, "net.ipv6.") == (family == "ip6")
	case o.Chain != nil && (o.Chain.Family == "ip" || o.Chain.Family == "ip6"):
		return o.Chain.Family == family
	}
	return true
}

// FoundKind is what a look after a failed call is at.
type FoundKind string

// Kinds of Found.
const (
	FoundBridge FoundKind = "bridge"
	FoundPorts  FoundKind = "ports"
	FoundMaster FoundKind = "master" // whose port an interface is
	FoundLeases FoundKind = "leases"
	FoundModule FoundKind = "module"
	FoundToken  FoundKind = "token"
	FoundImage  FoundKind = "image"

	FoundProcess FoundKind = "process"
)

// Want is a look that a failed call waits for.
type Want struct {
	Kind FoundKind
	// Name is an interface, modules, a file or a process. Both may be empty.
	Network, Name string
}

// Found is the state of what a failed call needed.
type Found struct {
	Kind FoundKind `json:"kind"`
	Name string    `json:"name,omitempty"`
	// Unseen is why it was not looked at.
	Unseen string `json:"unseen,omitempty"`
	Absent bool   `json:"absent,omitempty"`

	Type       string   `json:"type,omitempty"`
	Addresses  []string `json:"addresses,omitempty"`
	Master     string   `json:"master,omitempty"`
	MasterType string   `json:"master_type,omitempty"`
	Ports      int      `json:"ports,omitempty"`
	// Pods and Others name up to four ports, with and without a known pod.
	Pods   []Pod    `json:"pods,omitempty"`
	Others []string `json:"others,omitempty"`
	OfPods int      `json:"of_pods,omitempty"`

	Leased int `json:"leased,omitempty"`
	Stale  int `json:"stale,omitempty"`

	// Module is that of the first missing module, else of the last.
	Module ModuleState `json:"module,omitempty"`
	Kernel string      `json:"kernel,omitempty"`

	// Expires is in seconds since 1970; 0 is never.
	Expires int64 `json:"expires,omitempty"`
}

// ModuleState says whether the kernel has a module.
type ModuleState string

// States of a module.
const (
	ModuleLoaded  ModuleState = "loaded" // or part of the kernel
	ModuleThere   ModuleState = "there"  // not loaded
	ModuleAbsent  ModuleState = "absent"
	ModuleRemoved ModuleState = "removed" // with all of the running kernel
)
