//go:build linux

package tenants

import (
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

type kind struct {
	rig.PodOptions
	capabilities []string
}

// With a capability, a tenant has the privileges of istio-init, a VPN's sidecar, or a debugger.
var pods = map[string]kind{
	"plain":           {},
	"NET_ADMIN":       {capabilities: []string{"NET_ADMIN", "NET_RAW"}},
	"user namespace":  {PodOptions: rig.PodOptions{UserNamespace: true}, capabilities: []string{"ALL"}},
	"host network":    {PodOptions: rig.PodOptions{HostNetwork: true}},
	"host PID":        {PodOptions: rig.PodOptions{HostPID: true}},
	"host everything": {PodOptions: rig.PodOptions{HostNetwork: true, HostPID: true}, capabilities: []string{"NET_ADMIN", "SYS_PTRACE"}},
}

// Each attack happens during the setup of a pod whose container, names and ports are known.
func TestOneAttack(t *testing.T) {
	attacks := []struct {
		name, attack string
		from         []string
	}{
		{"a forged ADD of the victim's", "forge-add", []string{"plain", "NET_ADMIN", "user namespace", "host network", "host everything"}},
		{"a forged CHECK", "forge-check", []string{"NET_ADMIN"}},
		{"a forged DEL, to have its setup end", "forge-del", []string{"plain", "NET_ADMIN", "host everything"}},
		{"a call of a container that there is not", "forge-own", []string{"NET_ADMIN", "host everything"}},
		{"a forged parent span", "forge-parent", []string{"NET_ADMIN", "host everything"}},
		{"a plugin as root of a user namespace of its own", "forge-userns", []string{"plain", "NET_ADMIN"}},
		{"a parent that is called as the runtime is", "runtime-name", []string{"plain", "NET_ADMIN", "host PID", "host everything"}},
		{"a parent that has gone, so that the shim is it", "orphan", []string{"NET_ADMIN", "host PID", "host everything"}},
		{"two hundred programs in a plugin's environment", "environment", []string{"plain", "NET_ADMIN", "host everything"}},
		{"programs that name the victim", "mention", []string{"plain", "NET_ADMIN", "host everything"}},
		{"the way into the host's namespaces", "enter", []string{"plain", "NET_ADMIN", "host PID"}},
		{"an agent by the same ports and addresses", "accept-tcp", []string{"plain", "NET_ADMIN", "user namespace", "host network", "host everything"}},
		{"an agent by the same ports, in a user namespace of its own", "accept-userns", []string{"plain"}},
		{"an agent by the path of its socket", "accept-unix", []string{"plain", "NET_ADMIN", "host network"}},
		{"an agent by the abstract name of its socket", "accept-abstract", []string{"plain", "NET_ADMIN"}},
		{"a process of the node's that names the victim", "", []string{"beside the agent"}},
	}
	n := newNode(t, "[slow]\ncall = \"1m\"\nagent = \"1m\"\n") // the agent waits for the attack
	var all []pod
	tenants := map[string]*rig.Container{}
	for name, kind := range pods {
		kind.Namespace, kind.Name = theirs, fmt.Sprintf("tenant-%d", len(tenants))
		p, c := n.tenant(kind.PodOptions, kind.capabilities, nil, "wait")
		all, tenants[name] = append(all, p), c
	}
	victims := map[string]string{} // the victim's sandbox, by attack
	for _, attack := range attacks {
		for _, from := range attack.from {
			name := attack.name + ", from " + from
			p := n.served(fmt.Sprintf("%s-%06d", held, len(victims)), func() error {
				if tenants[from] == nil {
					return exec.Command("/bin/true", "--pod="+n.serving, mark).Run()
				}
				_, err := tenants[from].Exec(n.ctx, "/hostile", attack.attack)
				return err
			})
			victims[name], all = p.sandbox, append(all, p)
		}
	}
	harness.Check(t, n.stop())

	by := map[string][]finding{}
	for _, f := range append(n.recorded(), n.traced(all)...) {
		by[n.victim(f)] = append(by[n.victim(f)], f)
	}
	for _, attack := range attacks {
		t.Run(attack.name, func(t *testing.T) {
			for _, from := range attack.from {
				t.Run(from, func(t *testing.T) {
					id := victims[attack.name+", from "+from]
					report(t, by[id], 2)
				})
			}
		})
	}
	report(t, by[""], 2) // without an attack
}

type heldPod struct {
	sandbox  string
	from, to time.Time
}

// served runs a pod, makes an attack while the agent delays it, and removes the pod.
func (n *node) served(name string, attack func() error) pod {
	n.Helper()
	type come struct {
		pod
		error
	}
	came := make(chan come, 1)
	go func() {
		p, err := n.come(ordinary, name)
		came <- come{p, err}
	}()
	var container string
	select {
	case container = <-n.agent.held:
	case c := <-came:
		n.Fatalf("pod %s was not held: %v", name, c.error)
	}
	n.serving = container
	begin := time.Now()
	if err := attack(); err != nil {
		n.Errorf("the attack itself: %v", err)
	}
	n.victims = append(n.victims, heldPod{container, begin, time.Now()})
	harness.Check(n.T, n.agent.goOn())
	c := <-came
	harness.Check(n.T, c.error)
	harness.Check(n.T, n.leave(c.pod))
	return c.pod
}

func (n *node) victim(f finding) (sandbox string) {
	for _, v := range n.victims {
		if v.sandbox == f.sandbox {
			return v.sandbox
		}
	}
	for _, v := range n.victims { // sorted by time
		if !f.at.Before(v.from) {
			sandbox = v.sandbox
		}
	}
	return sandbox
}
