//go:build linux

package kubernetes

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/cniscope/cniscope/pkg/doctor"
	"github.com/cniscope/cniscope/test/chart"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

const (
	chartNamespace = "tracing"
	chartRelease   = "cniscope"
)

// kept is what an uninstalled chart leaves on a node.
const kept = "/var/lib/cniscope"

// The chart is installed with defaults, upgraded, installed again, and removed.
func TestChartLives(t *testing.T) {
	c := startWithControllers(t, rig.Options{})
	h := c.helm()
	before := c.nodeTree()
	run := func(c *cluster, arguments ...string) string {
		c.Helper()
		return harness.Must(h.Run(c.ctx, append(arguments, "--namespace", chartNamespace)...))(c)
	}

	notes := run(c, "install", chartRelease, h.Chart, "--create-namespace")
	harness.Says(t, notes, "NO SPAN LEAVES A NODE YET")
	scope := c.daemonPod(chartNamespace, chartRelease, running)
	c.logged(scope, "observing CNI calls")

	t.Run("what the default renders is whole", func(t *testing.T) { c.in(t).wholeInThePod(scope) })
	t.Run("helm test passes", func(t *testing.T) { run(c.in(t), "test", chartRelease) })
	t.Run("it holds on to nothing of a pod", func(t *testing.T) { c.in(t).letsGo(scope) })
	t.Run("an upgrade with another endpoint restarts nothing, and a pod has its trace", func(t *testing.T) {
		c := c.in(t)
		run(c, "upgrade", chartRelease, h.Chart, "--reuse-values", "--set", "options.sampling.ratio=1,options.export.otlp.endpoint="+c.jaeger.OTLP())
		c.logged(scope, "options changed")
		web := c.run(c.web("web-0"), running)
		add := c.traceOf(web, "CNI ADD", "kubelet/syncPod")
		c.whole(add)
		c.remove(web)
		if same := c.daemonPod(chartNamespace, chartRelease, running); same.Metadata.UID != scope.Metadata.UID {
			t.Error("it is another pod than before")
		}
	})
	t.Run("an upgrade with an option that needs a restart replaces the pod", func(t *testing.T) {
		c := c.in(t)
		run(c, "upgrade", chartRelease, h.Chart, "--reuse-values", "--set", "options.probe.linger=45s")
		harness.Eventually(c, func() error {
			now := c.daemonPod(chartNamespace, chartRelease, running)
			if now.Metadata.UID == scope.Metadata.UID {
				return errors.New("the pod is the one of before")
			}
			scope = now
			return nil
		})
		c.logged(scope, "observing CNI calls")
	})
	t.Run("a second release gets no pod on the node", func(t *testing.T) { c.in(t).second(h) })

	run(c, "uninstall", chartRelease)
	c.nothingLeft(chartNamespace, before)
}

func (c *cluster) wholeInThePod(scope *pod) {
	c.Helper()
	harness.Eventually(c, func() error {
		out, code := c.exec(scope, "/cniscope", "status")
		if code != 0 {
			return fmt.Errorf("status ended with %d:\n%s", code, out)
		}
		for _, says := range []string{"attached", "registered"} {
			if !strings.Contains(out, says) {
				return fmt.Errorf("status does not say %q:\n%s", says, out)
			}
		}
		return nil
	})
	metrics := c.scrape("127.0.0.1:9471")
	if !strings.Contains(metrics, "\ncniscope_node_network_ready 1\n") {
		c.Errorf("the metrics do not say that the network is ready:\n%s", metrics)
	}
	// The clock is the test machine's.
	out, code := c.exec(scope, "/cniscope", "doctor", "--kubelet", c.healthz)
	c.Logf("doctor in the pod:\n%s", out)
	for line := range strings.Lines(out) {
		if mark, _, _ := strings.Cut(line, " "); slices.Contains([]string{"✗", "!", "?"}, mark) && !strings.HasPrefix(line, "! clock:") {
			c.Errorf("doctor says %s", line)
		}
	}
	if !strings.Contains(out, "✓ runtime, cni-folder, cni-binaries") || code > 1 {
		c.Errorf("doctor ended with %d", code)
	}
	for _, gate := range doctor.Gates() {
		if out, code = c.exec(scope, "/cniscope", "doctor", "--wait", gate.Name, "--timeout", "20s"); code != 0 {
			c.Errorf("doctor --wait %s ended with %d:\n%s", gate.Name, code, out)
		}
	}
	if out, code = c.exec(scope, "/cniscope", "ps"); code != 0 {
		c.Errorf("ps ended with %d:\n%s", code, out)
	}
}

// letsGo checks that cniscope's mounts also disappear from older pods.
func (c *cluster) letsGo(scope *pod) {
	c.Helper()
	mounts := func() string {
		return string(harness.Must(os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", c.pid(scope))))(c))
	}
	web := c.run(c.web("mounted"), running)
	root := "/" + c.container(web)
	harness.Eventually(c, func() error {
		if !strings.Contains(mounts(), root) {
			return fmt.Errorf("the pod's root file system %s is not among cniscope's mounts: this test looks at the wrong thing", root)
		}
		return nil
	})
	c.remove(web)
	harness.Eventually(c, func() error {
		if strings.Contains(mounts(), root) {
			return fmt.Errorf("cniscope still has %s of a pod that is gone", root)
		}
		return nil
	})
}

// second installs the chart again: the scheduler finds the port in use.
func (c *cluster) second(h *chart.Helm) {
	c.Helper()
	_, err := h.Run(c.ctx, "install", "another", h.Chart, "--namespace", "elsewhere", "--create-namespace")
	harness.Check(c, err)
	c.daemonPod("elsewhere", "another", func(p *pod) error {
		for _, condition := range p.Status.Conditions {
			if condition.Type == "PodScheduled" && condition.Status == "False" && strings.Contains(condition.Message, "free ports") {
				return nil
			}
		}
		return fmt.Errorf("the pod of the second release is %+v", p.Status)
	})
	if _, err := h.Run(c.ctx, "uninstall", "another", "--namespace", "elsewhere"); err != nil {
		c.Error(err)
	}
}

// nothingLeft waits until the chart's objects are gone, removes what stays by default, as the document says, and waits
// until the node is as before.
func (c *cluster) nothingLeft(namespace string, before []string) {
	c.Helper()
	for kind, k := range kinds {
		if strings.Contains(k.api, ".coreos.com") || strings.Contains(k.api, "openshift") {
			continue
		}
		paths := []string{collection(c, kind, namespace), "/api/v1/namespaces/" + namespace + "/pods", "/apis/apps/v1/namespaces/" + namespace + "/controllerrevisions", "/api/v1/namespaces/" + namespace + "/secrets"}
		for _, path := range paths {
			harness.Eventually(c, func() error {
				var all struct{ Items []object }
				if err := c.api.Get(c.ctx, path, &all); err != nil {
					return err
				}
				for _, o := range all.Items {
					if name := o.Text("metadata", "name"); strings.Contains(name, "cniscope") && name != namespace {
						return fmt.Errorf("%s has %s", path, name)
					}
				}
				return nil
			})
		}
	}
	spool := filepath.Join(c.rig.Covered(kept), "spool")
	if _, err := os.Stat(filepath.Join(spool, "baseline.json")); err != nil {
		c.Errorf("an uninstalled chart leaves no baseline: %s", err)
	}
	harness.Check(c, os.RemoveAll(spool))
	harness.Eventually(c, func() error {
		if now := c.nodeTree(); !slices.Equal(now, before) {
			return fmt.Errorf("the node has\n%s\nbefore it had\n%s", strings.Join(now, "\n"), strings.Join(before, "\n"))
		}
		return nil
	})
}

func (c *cluster) nodeTree() (files []string) {
	c.Helper()
	root := fmt.Sprintf("/proc/%d/root", c.rig.ContainerdPID())
	for _, dir := range []string{"/run/cniscope", "/run/nri", "/etc/cni", "/etc/nri", "/opt/nri", "/etc/cniscope", kept} {
		harness.Check(c, filepath.WalkDir(root+dir, func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err == nil {
				files = append(files, strings.TrimPrefix(path, root)+" "+d.Type().String())
			}
			return err
		}))
	}
	return files
}

// exec runs a program in a container, like `kubectl exec`.
func (c *cluster) exec(p *pod, command ...string) (out string, code int32) {
	c.Helper()
	answer, err := c.rig.Runtime().ExecSync(c.ctx, &cri.ExecSyncRequest{ContainerId: c.container(p), Cmd: command, Timeout: 30})
	harness.Check(c, err)
	return string(answer.Stdout) + string(answer.Stderr), answer.ExitCode
}

func (c *cluster) scrape(address string) string {
	c.Helper()
	response, err := http.Get("http://" + address + "/metrics") //nolint:noctx // a test's own
	harness.Check(c, err)
	defer response.Body.Close()
	return string(harness.Must(io.ReadAll(response.Body))(c))
}
