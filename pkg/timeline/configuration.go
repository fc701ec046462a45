package timeline

import (
	"slices"

	"github.com/cniscope/cniscope/pkg/event"
)

// configuration takes what a run read. Whichever of its processes did: the cat of a shell
// script reads for the plugin.
func (t *Timeline) configuration(c *event.Configuration) {
	p := t.of(c.Process)
	if p == nil {
		return
	}
	if run := p.run.Run; run.Configuration == nil || run.Configuration.Invalid != "" {
		run.Configuration = c
	}
}

func (t *Timeline) result(r *event.Result) {
	if p := t.of(r.Process); p != nil {
		p.run.Run.Result = r
	}
}

// configured is the network that the call's first plugin read the configuration of; empty
// if that was not seen.
func (c *Call) configured() string {
	if read := c.Runs[0].Run.Configuration; read != nil {
		return read.Network
	}
	return ""
}

// configuredAs leaves only the networks of a name, if there are any.
func configuredAs(networks []event.Network, name string) []event.Network {
	if name == "" {
		return networks
	}
	return slices.DeleteFunc(networks, func(n event.Network) bool { return n.Name != name })
}
