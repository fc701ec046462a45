//go:build linux

package tenants

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/spans"
)

// cniscope names a tenant that a plugin calls, but traces none of its work, even if it mentions pods.
func TestATenantThatIsCalledIsNotFollowed(t *testing.T) {
	for name, capabilities := range map[string][]string{"plain": nil, "NET_ADMIN in its own network": {"NET_ADMIN"}} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, "")
			tenant := n.serveAPI(kind{PodOptions: rig.PodOptions{Namespace: theirs, Name: "nat"}, capabilities: capabilities},
				rig.ContainerOptions{Name: "bridge", Image: hostileImage, Args: []string{"/hostile", "serve", apiPort}, Mounts: map[string]string{n.known: "/known"}})
			n.network()
			pods := []pod{tenant}
			for i := range 3 {
				p := harness.Must(n.come(ordinary, fmt.Sprintf("web-%06d", i)))(t)
				harness.Check(t, n.leave(p))
				pods = append(pods, p)
			}
			harness.Check(t, n.stop())
			report(t, append(n.recorded(), n.traced(pods)...), 5)
			all := n.traces()
			for _, p := range pods[1:] {
				if !slices.ContainsFunc(all[p.sandbox], func(x *spans.Span) bool { return number(x, "cniscope.agent_pid") == n.api }) {
					t.Errorf("the trace of %s does not name who answered", p.name)
				}
			}
		})
	}
}
