//go:build linux

package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/cniscope/cniscope/test/harness"
)

const (
	// count is the number of nodes, dead the number without an answer: every 25th, see isDead.
	count, dead = 500, 20
	// memory bounds the RSS of an answer of all nodes, in MiB. pkg/fleet/fanout tests its duration in simulated
	// time.
	memory = 256
)

func isDead(i int) bool { return i%25 == 7 }

func TestAFleetOfFiveHundred(t *testing.T) {
	klog.SetLogger(klog.Logger{}) // no log lines about connections that a client closes
	c := startControlPlane(t)
	nodes := &Nodes{}
	kubelets := httptest.NewTLSServer(nodes)
	t.Cleanup(kubelets.Close)
	silent := harness.Must(net.Listen("tcp", "127.0.0.1:0"))(t) // the kernel accepts connections, no process answers
	t.Cleanup(func() { _ = silent.Close() })
	began := time.Now()
	c.populate(t, port(kubelets.Listener), port(silent))
	t.Logf("%d nodes and their pods are made after %s", count, time.Since(began).Round(time.Second))
	program := binary(harness.Build(t, "../../plugin/kubectl-cniscope"))
	admin := c.kubeconfig(t, adminToken)

	for _, run := range []struct {
		args []string
		says []string
	}{
		{[]string{"ps", "-A"}, []string{"node-450  shop/web-450  ADD eth0"}},
		{[]string{"top", "-A"}, []string{"250 of 48,000 pod setups and teardowns in the last 1h were slow, failed or hung, on 100 of 480 nodes (all namespaces)", "file_lock"}},
	} {
		t.Run(strings.Join(run.args, " "), func(t *testing.T) {
			r := program.run(t, admin, run.args...)
			t.Logf("%s after %s, with %d MiB of memory (RSS); %d nodes asked at once", run.args[0], r.took.Round(10*time.Millisecond), r.memory, nodes.Most())
			r.says(t, 3, append(run.says, fmt.Sprintf("%d of %d nodes did not answer: no answer within 5s", dead, count))...)
			for i := range count {
				harness.Equal(t, strings.Contains(r.said, Node(i)), isDead(i), Node(i), "is named")
			}
			if r.memory > memory {
				t.Errorf("it took %d MiB, want %d", r.memory, memory)
			}
		})
	}
	t.Run("doctor -A", func(t *testing.T) {
		program.run(t, admin, "doctor", "-A", "--node-timeout", "5s").says(t, 1, "✗ 4 of 480 nodes: agent:")
	})
	t.Run("who may not is told what is missing", func(t *testing.T) { c.refusals(t, program) })
}

func (c *controlPlane) refusals(t *testing.T, program binary) {
	jane := c.kubeconfig(t, janeToken)
	program.run(t, jane, "ps").says(t, 1, "you (jane) may not list pods in namespace cniscope", "kubectl create rolebinding NAME -n cniscope --role cniscope-operator --user jane")
	c.role(t, "reads", `{"apiGroups":[""],"resources":["pods"],"verbs":["get","list"]}`)
	program.run(t, jane, "ps", "--node", Node(0)).says(t, 1, "may not create pods/exec in namespace cniscope", "--role cniscope-operator")
	c.role(t, "execs", `{"apiGroups":[""],"resources":["pods/exec"],"verbs":["create","get"]}`)
	program.run(t, jane, "ps", "--node", Node(0)).says(t, 0, "shop/web-0")
}

func (c *controlPlane) role(t *testing.T, name, rule string) {
	t.Helper()
	ctx := context.Background()
	path := "/apis/rbac.authorization.k8s.io/v1/namespaces/" + Namespace
	_, err := c.Do(ctx, "POST", path+"/roles", fmt.Appendf(nil, `{"metadata":{"name":%q},"rules":[%s]}`, name, rule))
	harness.Check(t, err)
	_, err = c.Do(ctx, "POST", path+"/rolebindings", fmt.Appendf(nil,
		`{"metadata":{"name":%q},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":%q},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"jane"}]}`, name, name))
	harness.Check(t, err)
}

func (c *controlPlane) populate(t *testing.T, alive, silent int) {
	t.Helper()
	ctx := context.Background()
	for _, namespace := range []string{Namespace, "shop", "bank"} {
		harness.Check(t, c.Create(ctx, "/api/v1/namespaces", object(namespace)))
		harness.Check(t, c.Create(ctx, "/api/v1/namespaces/"+namespace+"/serviceaccounts", object("default")))
	}
	numbers := make(chan int)
	var workers sync.WaitGroup
	for range 16 {
		workers.Go(func() {
			for i := range numbers {
				at := alive
				if isDead(i) {
					at = silent
				}
				if err := c.node(ctx, i, at); err != nil {
					t.Errorf("%s: %v", Node(i), err)
				}
			}
		})
	}
	for i := range count {
		numbers <- i
	}
	close(numbers)
	workers.Wait()
}

func (c *controlPlane) node(ctx context.Context, i, port int) error {
	node := corev1.Node{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: Node(i)},
		Status: corev1.NodeStatus{
			Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}},
			DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: int32(port)}},
		},
	}
	if err := c.Create(ctx, "/api/v1/nodes", node); err != nil {
		return err
	}
	pod, path := ReaderPod(i), "/api/v1/namespaces/"+Namespace+"/pods"
	if err := c.Create(ctx, path, pod); err != nil {
		return err
	}
	body, err := json.Marshal(pod)
	if err != nil {
		return err
	}
	_, err = c.Do(ctx, http.MethodPut, path+"/"+Pod(i)+"/status", body)
	return err
}

func object(name string) map[string]any {
	return map[string]any{"metadata": map[string]any{"name": name}}
}

func port(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }

type binary string

type ran struct {
	out, said string
	code      int
	took      time.Duration
	memory    int64
}

func (p binary) run(t *testing.T, kubeconfig string, args ...string) ran {
	t.Helper()
	cmd := exec.Command(string(p), append([]string{"--kubeconfig", kubeconfig}, args...)...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	began := time.Now()
	_ = cmd.Run()
	r := ran{out: out.String(), said: said.String(), code: cmd.ProcessState.ExitCode(), took: time.Since(began)}
	r.memory = cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss >> 10
	return r
}

func (r ran) says(t *testing.T, code int, parts ...string) {
	t.Helper()
	harness.Says(t, r.out+r.said, parts...)
	if r.code != code || t.Failed() {
		t.Fatalf("it ended with %d, want %d, and said\n%s%s", r.code, code, r.out, r.said)
	}
}
