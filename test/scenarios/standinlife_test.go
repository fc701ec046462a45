//go:build linux

package scenarios

import (
	"testing"

	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/standin"
)

// An agent's exit during a call is a cause with evidence.
func TestAnAgentThatEnds(t *testing.T) {
	s := set(t, rig.Options{}, slowly)
	s.record()
	n := standin.Start(t, standin.Options{Env: []string{s.rig.Env()}})
	s.each(n, []behind{{
		name: "restarted", inject: standin.Injection{Point: "agent.ipam", Kind: "restart", Of: "agent", For: lost}, retry: true,
		cause: "agent_restarted", says: `vs-agent.*exited.*the new process \(pid \d+\) answered`, remedy: ".",
	}, {
		name: "killed", inject: standin.Injection{Point: "agent.flows", Kind: "kill", Of: "agent"}, fails: true,
		cause: "agent_ended", says: `vs-agent.*exited`, remedy: ".",
	}})
}
