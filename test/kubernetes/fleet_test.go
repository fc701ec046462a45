//go:build linux

package kubernetes

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	simulated "github.com/cniscope/cniscope/test/fleet"
	"github.com/cniscope/cniscope/test/harness"
)

func (c *cluster) fleetAnswers(web *pod) {
	c.Helper()
	dir := c.TempDir()
	harness.Check(c, os.Symlink(pluginFile, filepath.Join(dir, "kubectl-cniscope")))
	harness.Check(c, os.Symlink("kubectl-cniscope", filepath.Join(dir, "kubectl_complete-cniscope")))
	c.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	c.Setenv("CNISCOPE_NAMESPACE", chartNamespace)
	c.simulate(simulated.Node(10), simulated.Node(50))

	want := func(person string, code int, arguments []string, parts ...string) {
		c.Helper()
		s := c.kubectl(person, "", append([]string{"cniscope"}, arguments...)...)
		harness.Says(c, s.out+s.err, parts...)
		if s.code != code || c.Failed() {
			c.Fatalf("kubectl cniscope %v of %s ended with %d, want %d:\n%s%s", arguments, person, s.code, code, s.out, s.err)
		}
		c.Logf("%s: kubectl cniscope %s\n%s%s", person, strings.Join(arguments, " "), s.out, s.err)
	}
	name := web.Metadata.Name
	want(operator, 3, []string{"why", name, "-n", "shop"}, "ADD eth0  SLOW: 1.", "may not get pods in namespace shop")
	c.admin("create", "rolebinding", "views", "-n", "shop", "--clusterrole", "view", "--user", operator)
	want(operator, 0, []string{"why", name, "-n", "shop"}, "shop/"+name+" on "+c.node, "CNISlow", "ADD eth0  SLOW: 1.", "sleep", "│")
	want(operator, 0, []string{"ps", "-A"}, simulated.Node(50)+"  shop/web-50")
	want(operator, 0, []string{"ps", "-n", "shop"}, "shop/web-50")
	want(operator, 0, []string{"top", "-A"}, "(all namespaces)", "of 3 nodes", "file_lock", c.node, simulated.Node(10))
	want(operator, 0, []string{"top", "-n", "shop"}, "(namespace shop)", c.node)
	// Doctor's findings are the rig's; the simulated nodes have none.
	s := c.kubectl(operator, "", "cniscope", "doctor", "-A")
	if s.code != 0 && s.code != 1 && s.code != 3 || strings.Contains(s.err, "did not answer") || !strings.Contains(s.out, "of 3 nodes") && !strings.Contains(s.out, "on 3 nodes") {
		c.Errorf("doctor -A ended with %d:\n%s%s", s.code, s.out, s.err)
	}
	want(somebody, 1, []string{"ps", "-n", "shop"}, "may not list pods in namespace "+chartNamespace, "--role cniscope-operator --user somebody")
	file := filepath.Join(dir, "node.rec.gz")
	want(operator, 0, []string{"record", "node/" + c.node, "--for", "1s", "-o", file}, "cniscope show "+file)
	if completed := c.kubectl(developer, "", "__complete", "cniscope", "why", "-n", "shop", "w"); !strings.Contains(completed.out, name+"\n") {
		c.Errorf("kubectl completes %q, %s", completed.out, completed.err)
	}
}

// simulate adds nodes with a fake kubelet and waits until their pods appear to run.
func (c *cluster) simulate(names ...string) {
	c.Helper()
	var mu sync.Mutex
	nodeOf := map[string]string{}
	nodes := &simulated.Nodes{NodeOf: func(pod string) string {
		mu.Lock()
		defer mu.Unlock()
		return nodeOf[pod]
	}}
	kubelets := httptest.NewTLSServer(nodes)
	c.Cleanup(kubelets.Close)
	port := kubelets.Listener.Addr().(*net.TCPAddr).Port
	for _, name := range names {
		harness.Check(c, c.api.Create(c.ctx, "/api/v1/nodes", corev1.Node{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/os": "linux"}},
			Status: corev1.NodeStatus{
				Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}},
				DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: int32(port)}},
				Allocatable:     corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi"), "pods": resource.MustParse("110")},
				Capacity:        corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi"), "pods": resource.MustParse("110")},
			},
		}))
		c.Cleanup(func() { _, _ = c.api.Do(c.ctx, "DELETE", "/api/v1/nodes/"+name, nil) })
	}
	harness.Eventually(c, func() error {
		var all corev1.PodList
		if err := c.api.Get(c.ctx, "/api/v1/namespaces/"+chartNamespace+"/pods?labelSelector=app.kubernetes.io/instance="+chartRelease, &all); err != nil {
			return err
		}
		var failed error
		found := 0
		for _, p := range all.Items {
			if slices.Contains(names, p.Spec.NodeName) {
				mu.Lock()
				nodeOf[p.Name] = p.Spec.NodeName
				mu.Unlock()
				found++
				failed = errors.Join(failed, c.looksRunning(p))
			}
		}
		if found != len(names) {
			failed = errors.Join(failed, fmt.Errorf("the DaemonSet has %d pods on %v", found, names))
		}
		return failed
	})
}

func (c *cluster) looksRunning(p corev1.Pod) error {
	if p.Status.Phase == corev1.PodRunning {
		return nil
	}
	p.APIVersion, p.Kind = "v1", "Pod"
	p.Status = simulated.ReaderPod(0).Status
	body, err := json.Marshal(p)
	if err != nil {
		return err
	}
	_, err = c.api.Do(c.ctx, "PUT", "/api/v1/namespaces/"+p.Namespace+"/pods/"+p.Name+"/status", body)
	return err
}
