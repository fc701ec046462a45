package model

import (
	"github.com/cniscope/cniscope/pkg/event"
)

// Call is the runs of one network for one command, container and interface.
type Call struct {
	Command, IfName string
	// NetNS is the path in CNI_NETNS.
	NetNS string
	Parent
	// Network is the network's name, and NeverRun the plugins of its chain whose
	// turn never came: both only where the configuration leaves no doubt.
	Network  string
	NeverRun []string
	// Configured changes with the network's configuration (event.Network.Digest); empty if that is not known.
	Configured string
	// Hung: it was reported while it ran, because it took longer than slow.hung.
	Hung bool
	// Concurrent is the largest number of other calls on the node that ran at the same time.
	Concurrent int
	// Reconfigured is when the CNI folder changed during the call (the last time, exact to 250 ms); 0 if it
	// did not. The runtime then waits for the calls that run before it begins another one.
	Reconfigured int64
	// Seen: system calls of its processes were observed, for at least part of the time.
	Seen bool
	// Cut is how much of what its processes did was not kept, by what it is: "bytes",
	// "requests", "waits", "connections", "addresses", "sysctls", "other". Nil if all was.
	Cut map[string]uint64
	// First is the first connection of the pod; nil if it did not come while the operation
	// was open. See Connected.
	First *FirstConnection
	// Runs of the chain, in order of their start. Each has Image.Run set.
	Runs       []*Image
	Start, End int64
}

// Parent is what a call hangs under.
type Parent struct {
	// Trace is what the call's environment says; else, and then Told is set, what the runtime
	// told when the call was over. Empty if neither said anything.
	Trace event.TraceContext
	Told  bool
}

// FirstConnection is a pod's first TCP connection, if it was established while the setup was open.
type FirstConnection struct {
	// At is when it was there, in monotonic ns.
	At            int64
	Local, Remote string
}

// Live returns the run of the chain that is under way; nil if none is.
func (c *Call) Live() *Image {
	for _, run := range c.Runs {
		if !run.Ended {
			return run
		}
	}
	return nil
}

// Plugins lists the chain as far as it was run.
func (c *Call) Plugins() (names []string) {
	for _, run := range c.Runs {
		names = append(names, run.Run.Plugin)
	}
	return names
}

// ConfiguredNetwork is the network that the call's first plugin read the configuration of; empty
// if that was not seen.
func (c *Call) ConfiguredNetwork() string {
	if read := c.Runs[0].Run.Configuration; read != nil {
		return read.Network
	}
	return ""
}

// Main returns the plugin that the call's chain begins with in the configuration: the one that makes the
// interface (CNI specification, section 1). Every command of a network has the same. Of a DEL that ended
// early it is known only where the configuration is; else it is the plugin that the DEL came to.
func (c *Call) Main() string {
	ran := c.Plugins()
	switch {
	case c.Command != "DEL":
		return ran[0]
	case len(c.NeverRun) > 0:
		return c.NeverRun[len(c.NeverRun)-1]
	}
	return ran[len(ran)-1]
}
