//go:build linux

package cnis

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

// The first pods wait for an agent that compiles its programs; later ones are ordinary.
func TestBursts(t *testing.T) {
	if !apart(t) {
		return
	}
	n := newNode(t)
	n.observe()
	n.startAgent(nil)
	cold := n.crowd("cold", 3)
	named := 0
	for _, p := range cold {
		harness.Check(t, p.err)
		c := n.call(p.name)
		n.says(c, "agent|slow_command", `cilium-agent`, `^$|^raise the CPU limit of cilium-agent`)
		if strings.Contains(c.verdict(), "ran clang") && strings.Contains(c.verdict(), "serving this call or ") {
			named++
			n.says(c, "slow_command", `^\S+ of \S+: cilium-agent`, `^raise the CPU limit of cilium-agent, shared by clang,`)
		}
	}
	if named == 0 {
		t.Error("no verdict names clang")
	}
	n.warm()

	eight := n.crowd("eight", 8)
	for _, p := range eight {
		harness.Check(t, p.err)
		if c := n.call(p.name); c.Took() > 4000 { // the agent's rate limit: four at once, then one per two seconds
			n.says(c, "agent_idle|agent", `waited for cilium-agent .* cilium-agent was (idle|on a CPU|ready to run) for`, `^(read cilium-agent's log|raise the CPU limit)`)
		}
	}
	n.certainIsTrue(append(cold, eight...))
}

// A rate-limited agent delays pods while idle, and rejects those that would wait too long.
func TestLimited(t *testing.T) {
	if !apart(t) {
		return
	}
	n := newNode(t)
	n.observe()
	n.startWarmAgent(options{"api-rate-limit": `{"endpoint-create":"rate-limit:0.3/s,rate-burst:1,skip-initial:0,max-wait-duration:1m,auto-adjust:false"}`})
	n.warm()
	var calls []*call
	for _, p := range n.crowd("limited", 3) {
		harness.Check(t, p.err)
		calls = append(calls, n.call(p.name))
	}
	slices.SortFunc(calls, func(a, b *call) int { return cmp.Compare(a.Took(), b.Took()) })
	for _, c := range calls[1:] { // one call passes at once
		n.says(c, "agent|agent_idle", `waited for cilium-agent at \S+/cilium\.sock`, `^read cilium-agent's log`)
	}
	n.kill(ciliumAgent)
	n.startWarmAgent(options{"api-rate-limit": `{"endpoint-create":"rate-limit:0.1/s,rate-burst:1,skip-initial:0,max-wait-duration:1s,auto-adjust:false"}`})
	turned := 0
	for _, p := range n.crowd("turned", 3) {
		if p.err != nil {
			turned++
			n.says(n.call(p.name), "agent_busy", `rejected the request \(too many requests\).*429`, `api-rate-limit`)
		}
	}
	if turned == 0 {
		t.Error("nobody was turned away")
	}
}
