//go:build linux

package cnis

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/spans"
)

// An agent stops for two seconds during a call, is killed, never answers, or is dead.
func TestFaults(t *testing.T) {
	if !apart(t) {
		return
	}
	n := newNode(t)
	n.observe()
	n.startWarmAgent(nil)
	n.warm()

	t.Log("stopped for two seconds")
	wait := n.begin("mid-stop", web)
	n.asked("mid-stop")
	n.signal(ciliumAgent, unix.SIGSTOP)
	time.Sleep(2 * time.Second)
	n.signal(ciliumAgent, unix.SIGCONT)
	harness.Check(t, wait().err)
	n.says(n.call("mid-stop"), "agent_stopped", `cilium-agent was stopped for`, `kill -CONT`)
	n.ordinary(n.call(n.add("after-stop").name))
	n.silent()

	t.Log("killed")
	wait = n.begin("killed", web)
	n.asked("killed")
	n.signal(ciliumAgent, unix.SIGSTOP) // prevents it from finishing
	n.kill(ciliumAgent)
	killed := wait()
	if killed.err == nil {
		t.Error("the pod came up without an agent")
	}
	n.says(n.call("killed"), "agent_ended", `cilium-agent \(pid \d+\) exited \S+ after it was called`, `kubectl logs --previous`)

	t.Log("dead: nobody behind the socket")
	dead := n.begin("dead", web)
	n.finds("cni-agent", ciliumAgent, "no process listens")
	if dead().err == nil {
		t.Error("the pod came up without an agent")
	}
	n.says(n.call("dead"), "agent_refused", `cilium\.sock.*refused.*; it tried \d+ times|failed \d+ times to connect to \S+/cilium\.sock \(ECONNREFUSED\)`, `.`)
	n.hung("dead")

	t.Log("there again")
	n.startWarmAgent(nil)
	n.warm()
	n.silent()

	t.Log("hung: it never answers")
	n.signal(ciliumAgent, unix.SIGSTOP)
	hung := n.begin("hung", web)
	n.finds("cni-agent", ciliumAgent, "is stopped", "kill -CONT")
	if hung().err == nil {
		t.Error("the pod came up without an agent")
	}
	n.signal(ciliumAgent, unix.SIGCONT)
	n.says(n.call("hung"), "agent_stopped", `cilium-agent was stopped for`, `kill -CONT`)
	n.hung("hung")
	n.ordinary(n.call(n.add("after-hung").name))
	n.silent()
}

func (n *node) asked(pod string) {
	n.Helper()
	n.agentSays(fmt.Sprintf("k8sPodName=shop/%s ", pod))
}

func (n *node) hung(pod string) {
	n.Helper()
	all := harness.Must(spans.Read(n.spans))(n.T)
	for _, x := range all {
		if x.Attrs["cniscope.kind"] == "hung" && x.Attrs["k8s.pod.name"] == pod {
			return
		}
	}
	n.Errorf("%s hung, and that was not said while it did", pod)
}
