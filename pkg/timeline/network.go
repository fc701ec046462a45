package timeline

import (
	"cmp"
	"slices"
	"time"

	"github.com/cniscope/cniscope/pkg/active"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

// loopback is the network that go-cni adds to every sandbox without a file (opts.go, WithLoNetwork).
var loopback = event.Network{Name: "cni-loopback", Plugins: []event.Plugin{{Type: "loopback"}}}

type networks struct {
	known    []event.Network
	since    int64           // of the latest change
	programs *event.Programs // nil if unread
}

// of returns a call's network, and the chain's plugins that have not run. Both need a single matching network.
func (n *networks) of(call *model.Call) (name string, rest []string, known bool) {
	ran := call.Plugins()
	var found []event.Network
	for _, network := range configuredAs(append([]event.Network{loopback}, n.known...), call.ConfiguredNetwork()) {
		if (network.Name == loopback.Name) == (call.IfName == "lo") && hasPrefix(chain(network, call.Command), ran) {
			found = append(found, network)
		}
	}
	if len(found) != 1 {
		return "", nil, false
	}
	return found[0].Name, chain(found[0], call.Command)[len(ran):], true
}

func (n *networks) resolve(op *active.Operation, call *model.Call, settle time.Duration, cut string) {
	name, rest, _ := n.of(call)
	call.Network = cmp.Or(call.ConfiguredNetwork(), name)
	call.Configured, call.Programs = n.digest(call.Network), n.programs
	switch last := call.Runs[len(call.Runs)-1]; {
	case len(rest) == 0 || !last.Ended || op.Lost > 0:
	case op.Kind == model.Setup && op.Running:
		// A missing plugin would have prevented it.
	case call.Start < n.since:
		// It may have used the previous configuration.
	case op.Closed == model.ClosedFinished && !last.Failed(): // they may have run unseen
		op.Lacks(cut)
	case !last.Failed() && (op.Closed != model.ClosedNext || op.Commit-op.End >= int64(settle)):
		// A runtime that misses a plugin undoes its work at once. Another may have a shorter network.
	default:
		call.NeverRun = rest
	}
}

// unbegun returns the chain beside lo's call: the only one, or the only one whose first plugin has a fault.
func (n *networks) unbegun(lo *model.Call) []string {
	all := slices.DeleteFunc(slices.Clone(n.known), func(one event.Network) bool {
		return len(one.Plugins) == 0 || len(n.known) > 1 && n.programs.Of(one.Plugins[0].Type) == nil
	})
	if len(all) != 1 || lo.Start < n.since {
		return nil
	}
	return chain(all[0], "ADD")
}

// lackLoopback reports whether the runtime's loopback could not start.
func (n *networks) lackLoopback(op *active.Operation) bool {
	return n.programs.Of(loopback.Plugins[0].Type) != nil && n.programs.Loopback &&
		(op.Closed == model.ClosedSettled || op.Closed == model.ClosedNext) &&
		!slices.ContainsFunc(op.Calls, func(c *model.Call) bool { return c.IfName == "lo" })
}

func (n *networks) digest(name string) string {
	found := configuredAs(slices.Clone(n.known), name)
	if name == "" || len(found) != 1 {
		return ""
	}
	return found[0].Digest
}

func (n *networks) begin(ran []string, command string) bool {
	return slices.ContainsFunc(n.known, func(one event.Network) bool {
		return hasPrefix(chain(one, command), ran)
	})
}

// chain lists plugins in the order of the command: DEL goes backwards (CNI specification, section 3).
func chain(n event.Network, command string) (types []string) {
	for _, plugin := range n.Plugins {
		types = append(types, plugin.Type)
	}
	if command == "DEL" {
		slices.Reverse(types)
	}
	return types
}

func hasPrefix(chain, ran []string) bool {
	return len(ran) <= len(chain) && slices.Equal(chain[:len(ran)], ran)
}

func configuredAs(networks []event.Network, name string) []event.Network {
	if name == "" {
		return networks
	}
	return slices.DeleteFunc(networks, func(n event.Network) bool { return n.Name != name })
}
