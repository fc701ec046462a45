package doctor

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/event"
)

// Full tables always count, forwarding only for routed networks.
func TestWhatKeepsPacketsOfPods(t *testing.T) {
	facts := func(plugin string, on bool, used int) *fact.Facts {
		f := &fact.Facts{}
		f.CRI.Value.Loaded = []fact.Loaded{{Network: event.Network{Plugins: []event.Plugin{{Type: plugin}}}}}
		f.Forwarding.Value.Switches = map[string]bool{"ipv4/ip_forward": on}
		f.Forwarding.Value.Tables = []fact.Table{{Name: "connection tracking", Option: "net.netfilter.nf_conntrack_max", Used: used, Limit: 1000}}
		return f
	}
	for name, test := range map[string]struct {
		facts *fact.Facts
		says  string
	}{
		"sound":                {facts("bridge", true, 949), ""},
		"off":                  {facts("bridge", false, 0), "the node does not forward packets of pods: net.ipv4.ip_forward is 0"},
		"off, and not needed":  {facts("macvlan", false, 0), ""},
		"full":                 {facts("bridge", true, 950), "the kernel's table of connection tracking is full: 950 of 1000 entries"},
		"full, with a macvlan": {facts("macvlan", true, 1000), "the kernel's table of connection tracking is full: 1000 of 1000 entries"},
	} {
		found, _ := podsAreForwarded(test.facts)
		said := ""
		for _, f := range found {
			said += f.Summary
		}
		if said != test.says {
			t.Errorf("%s: %q", name, said)
		}
	}
}
