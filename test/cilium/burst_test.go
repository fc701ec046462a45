//go:build linux

package cilium

import (
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

// The first three pods of a node come at once to an agent that has just started, and has to
// compile its programs for them: clang is not one pod's, and is named as that. Later there is
// nothing to compile, and nothing to say.
func TestColdBurst(t *testing.T) {
	if !apart(t) {
		return
	}
	n := newNode(t)
	n.observe()
	n.startAgent(nil)
	first := n.crowd("cold", 3)
	for _, p := range first {
		harness.Check(t, p.err)
		n.says(n.call(p.name), "agent|agent_command|slow_command", `cilium-agent.*clang`, ``)
	}
	n.agentSays("progName=cil_from_host")
	n.ordinary(n.call(n.add("warm").name))
}
