//go:build linux

package tenants

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

type size struct {
	pods               int // ordinary pods, at least
	connections, execs int
	within             time.Duration
}

func sizes() size {
	if os.Getenv("CNISCOPE_TENANTS") == "full" {
		return size{pods: 100, connections: 1_000_000, execs: 100_000, within: 8 * time.Minute}
	}
	return size{pods: 20, connections: 10_000, execs: 1_000, within: 10 * time.Second}
}

var tenants = []kind{
	{PodOptions: rig.PodOptions{Name: "nat"}},
	{PodOptions: rig.PodOptions{Name: "add"}, capabilities: []string{"NET_ADMIN"}},
	{PodOptions: rig.PodOptions{Name: "eth0", UserNamespace: true}, capabilities: []string{"ALL"}},
	{PodOptions: rig.PodOptions{Name: "web", HostNetwork: true}},
}

// Hostile pods run under others' names while ordinary pods start and stop. No trace has theirs.
func TestTenants(t *testing.T) {
	size := sizes()
	n := newNode(t, "")
	var pods []pod
	var attackers []*rig.Container
	first := harness.Must(n.come(ordinary, "web-0"))(t) // the first victim
	pods = append(pods, first)
	for _, tenant := range tenants {
		tenant.Namespace = theirs
		p, c := n.tenant(tenant.PodOptions, tenant.capabilities, asPlugin, "flood",
			fmt.Sprintf("-connections=%d", size.connections), fmt.Sprintf("-execs=%d", size.execs), fmt.Sprintf("-for=%s", size.within))
		pods, attackers = append(pods, p), append(attackers, c)
	}
	harness.Check(t, n.leave(first))

	begin := time.Now()
	over := make(chan struct{})
	go n.watch(attackers, over)
	pods = append(pods, n.churn(size.pods, over)...)
	for i, c := range attackers {
		p := progress(c)
		if p.Connections < int64(size.connections) || p.Execs < int64(size.execs) {
			t.Errorf("tenant %s made only %d connections and %d execs", tenants[i].Name, p.Connections, p.Execs)
		}
		if p.Exact == 0 {
			t.Errorf("tenant %s never had the ports of a victim's connection", tenants[i].Name)
		}
		t.Logf("tenant %s: %d connections (%d of them a victim's), %d execs; %d in vain", tenants[i].Name, p.Connections, p.Exact, p.Execs, p.Failed)
	}
	harness.Check(t, n.stop())

	found := append(n.recorded(), n.traced(pods)...)
	report(t, found, 5)
	count := 0
	for _, p := range pods {
		if p.namespace == ordinary {
			count++
		}
	}
	t.Logf("%d ordinary pods came and went in %s beside %d hostile ones:\n%s", count, time.Since(begin).Round(time.Second), len(attackers), summary(found))
}

// asPlugin is a plugin's environment; its network namespace is the host's if the pod sees that.
var asPlugin = []string{
	"CNI_COMMAND=ADD", "CNI_CONTAINERID=mallory000000", "CNI_IFNAME=eth0", "CNI_NETNS=/proc/1/ns/net", "CNI_PATH=/:/opt/cni/bin",
	"CNI_ARGS=K8S_POD_NAMESPACE=mallory;K8S_POD_NAME=mallory-env",
}

func (n *node) tenant(o rig.PodOptions, capabilities, env []string, args ...string) (pod, *rig.Container) {
	n.Helper()
	// The tenant chooses all NRI data about itself.
	o.Annotations = map[string]string{"cniscope.dev/sample": "always"}
	o.Labels = map[string]string{"app": mark}
	o.Hostname = "web-0"
	if o.HostNetwork {
		o.Config = func(c *cri.PodSandboxConfig) { c.Hostname = "" }
		env = append(slices.Clone(env), "MALLORY_HOST_NETWORK=yes")
	}
	p := harness.Must(n.run(o))(n.T)
	c := harness.Must(n.rig.RunContainer(n.ctx, p.sandbox, o, rig.ContainerOptions{
		Name: "bridge", Image: hostileImage, Args: append([]string{"/hostile"}, args...), Env: env,
		Capabilities: capabilities, Mounts: map[string]string{n.known: "/known"},
	}))(n.T)
	return p, c
}

// churn starts and stops pods until the count is reached and the attack is over.
func (n *node) churn(count int, over <-chan struct{}) (pods []pod) {
	n.Helper()
	var mu sync.Mutex
	next := 0
	take := func() (string, string, bool) {
		mu.Lock()
		defer mu.Unlock()
		select {
		case <-over:
			if next > count*5/4 { // every fifth pod is not ordinary
				return "", "", false
			}
		default:
		}
		next++
		if next%5 == 0 { // hostile names, during calls of others
			return theirs, []string{"nat", "add", "eth0", "web"}[next/5%4] + strings.Repeat("-", next/20%2) + strings.Repeat("x", next/20%2), true
		}
		return ordinary, fmt.Sprintf("web-%06d", next), true // like an interface of the pod web
	}
	enough := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return next > count*5/4
	}
	var running sync.WaitGroup
	for range 3 {
		running.Go(func() {
			for namespace, name, more := take(); more; namespace, name, more = take() {
				if enough() { // the rest start slowly, to leave the CPUs to the attack
					select {
					case <-over:
					case <-time.After(time.Second):
					}
				}
				o := rig.PodOptions{Namespace: namespace, Name: name, UID: fmt.Sprintf("%s-%s-%d", namespace, name, time.Now().UnixNano())}
				p, err := n.run(o)
				if err == nil {
					err = n.leave(p)
				}
				mu.Lock()
				pods = append(pods, p)
				mu.Unlock()
				if err != nil {
					n.Errorf("pod %s/%s: %v", namespace, name, err)
					return
				}
			}
		})
	}
	running.Wait()
	return pods
}

func (n *node) watch(attackers []*rig.Container, over chan<- struct{}) {
	defer close(over)
	said := time.Now()
	for tick := time.Tick(500 * time.Millisecond); ; {
		select {
		case <-n.ctx.Done():
			return
		case <-tick:
		}
		ended := 0
		var sum tally
		for _, c := range attackers {
			p := progress(c)
			sum.Connections, sum.Execs = sum.Connections+p.Connections, sum.Execs+p.Execs
			if gone, err := c.Exited(n.ctx); err == nil && gone || p.Over {
				ended++
			}
		}
		if time.Since(said) > 5*time.Second {
			said = time.Now()
			n.Logf("%d connections, %d execs", sum.Connections, sum.Execs)
		}
		if ended == len(attackers) {
			return
		}
	}
}

type tally struct {
	Connections, Execs, Failed, Exact int64
	Over                              bool
}

func progress(c *rig.Container) (p tally) {
	for line := range strings.Lines(c.Said()) {
		if at := strings.IndexByte(line, '{'); at >= 0 {
			_ = json.Unmarshal([]byte(line[at:]), &p)
		}
	}
	return p
}
