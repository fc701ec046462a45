package timeline

import (
	"cmp"
	"slices"
	"time"

	"github.com/cniscope/cniscope/pkg/active"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

// loopback is the network that go-cni adds to every sandbox by itself (go-cni
// opts.go, WithLoNetwork); no file configures it.
var loopback = event.Network{Name: "cni-loopback", Plugins: []event.Plugin{{Type: "loopback"}}}

// networks are those that the CNI folder holds.
type networks struct {
	known    []event.Network
	since    int64           // when they became what they are
	programs *event.Programs // of their plugins; nil if they were not looked at
}

// of finds the network of a call, and the plugins of its chain whose turn has not come.
// It is known only if a single one can be meant: the environment of a plugin does not name
// it, but its configuration does, where that was seen.
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

// resolve names the network of a call, and the plugins of its chain whose turn never came.
func (n *networks) resolve(op *active.Operation, call *model.Call, settle time.Duration) {
	name, rest, _ := n.of(call)
	call.Network = cmp.Or(call.ConfiguredNetwork(), name)
	call.Configured, call.Programs = n.digest(call.Network), n.programs
	switch last := call.Runs[len(call.Runs)-1]; {
	case len(rest) == 0 || !last.Ended || op.Lost > 0:
	case op.Kind == model.Setup && op.Running:
		// It would not run if a plugin had been missing.
	case call.Start < n.since:
		// The runtime may have gone by what the configuration was before.
	case op.Closed == model.ClosedFinished && !last.Failed(): // their turn may have come unseen
		op.Lacks(cutOff)
	case !last.Failed() && (op.Closed != model.ClosedNext || op.Commit-op.End >= int64(settle)):
		// A runtime that misses a plugin undoes at once what was done. Another runtime on
		// the node may have a network that begins like this one and ends here.
	default:
		call.NeverRun = rest
	}
}

// digest is that of the one network of a name; empty if there is none, or several.
func (n *networks) digest(name string) string {
	found := configuredAs(slices.Clone(n.known), name)
	if name == "" || len(found) != 1 {
		return ""
	}
	return found[0].Digest
}

// begin reports whether any known network's chain begins with these plugins.
func (n *networks) begin(ran []string, command string) bool {
	return slices.ContainsFunc(n.known, func(one event.Network) bool {
		return hasPrefix(chain(one, command), ran)
	})
}

// chain lists a network's plugins in the order in which the command calls them: DEL
// goes backwards (CNI specification, section 3).
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

// configuredAs leaves only the networks of a name, if there are any.
func configuredAs(networks []event.Network, name string) []event.Network {
	if name == "" {
		return networks
	}
	return slices.DeleteFunc(networks, func(n event.Network) bool { return n.Name != name })
}
