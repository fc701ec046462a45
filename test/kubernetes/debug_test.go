//go:build linux

package kubernetes

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

// kubectl cniscope debug observes a node without cniscope, and leaves it as it was, however it ends.
func TestDebug(t *testing.T) {
	c := startTraced(t, rig.Options{
		Networks: []rig.Network{{Plugins: []rig.Plugin{rig.Bridge(), rig.Test("policy")}}},
		Plugins:  map[string][]byte{"policy": rig.Script(`[ "$CNI_COMMAND" = DEL ] || sleep 3`)},
	}, false)
	c.controllers()
	before := c.nodeState()

	t.Run("verdicts, recording and page", func(t *testing.T) {
		c := c.in(t)
		d := c.debug("--for", "30s")
		d.until(&d.out, "default/debugged")
		c.Logf("first verdict after %s", time.Since(d.began).Round(time.Millisecond))
		code := d.wait()
		harness.Equal(t, code, 0, "it ended with", d.out.String(), d.err.String())
		harness.Says(t, d.out.String(), "ADD eth0  SLOW: 3.", "sleep")
		if page, err := os.ReadFile(filepath.Join(d.dir, c.node+".html")); err != nil || !bytes.Contains(page, []byte("debugged")) {
			t.Errorf("the page: %v, %d bytes", err, len(page))
		}
		c.asBefore(before, d)
	})
	t.Run("doctor", func(t *testing.T) {
		c := c.in(t)
		d := c.debug("--", "doctor")
		if code := d.wait(); code > 1 && code != 3 || !strings.Contains(d.out.String(), "1 of 1 node") {
			t.Errorf("it ended with %d:\n%s%s", code, d.out.String(), d.err.String())
		}
		c.asBefore(before, d)
	})
	for name, signal := range map[string]syscall.Signal{"Ctrl-C": syscall.SIGINT, "the connection breaks": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			c := c.in(t)
			d := c.debug("--for", "10s")
			d.until(&d.err, "observing")
			harness.Check(t, d.cmd.Process.Signal(signal))
			d.wait()
			c.asBefore(before, d)
		})
	}
}

type debugging struct {
	*cluster
	cmd      *exec.Cmd
	dir      string
	out, err harness.Log
	began    time.Time
	ended    chan error
	loaded   scope.BPF // of its cniscope
}

func (c *cluster) debug(arguments ...string) *debugging {
	c.Helper()
	d := &debugging{cluster: c, dir: c.TempDir()}
	d.cmd = exec.CommandContext(c.ctx, pluginFile, append([]string{
		"debug", "node/" + c.node, "--image", imageName, "--runtime-socket", c.rig.Socket(), "--nri-socket", c.rig.NRISocket(),
	}, arguments...)...)
	d.cmd.Dir = d.dir
	d.cmd.Env = append(os.Environ(), "KUBECONFIG="+c.adminConfig(), "HOME="+d.dir)
	d.cmd.Stdout, d.cmd.Stderr = io.Writer(&d.out), io.Writer(&d.err)
	d.began = time.Now()
	harness.Check(c, d.cmd.Start())
	d.ended = make(chan error, 1)
	go func() { d.ended <- d.cmd.Wait() }()
	c.Cleanup(func() { _ = d.cmd.Process.Kill() })
	if slices.Contains(arguments, "--for") {
		d.until(&d.err, "observing")
		d.loaded = c.loaded()
		c.Logf("observing after %s, %d BPF programs", time.Since(d.began).Round(time.Millisecond), len(d.loaded.Programs))
	}
	if slices.Contains(arguments, "30s") {
		web := c.web("debugged")
		web.At("spec", "containers").([]object)[0]["ports"] = nil
		c.run(web, running)
	}
	return d
}

func (d *debugging) until(s *harness.Log, text string) {
	d.Helper()
	harness.Eventually(d, func() error {
		if strings.Contains(s.String(), text) {
			return nil
		}
		if len(d.ended) > 0 {
			d.Fatalf("it has ended, and not said %q: %s%s", text, d.out.String(), d.err.String())
		}
		return fmt.Errorf("it has not said %q: %s%s", text, d.out.String(), d.err.String())
	})
}

func (d *debugging) wait() int {
	d.Helper()
	err := <-d.ended
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		d.Fatal(err)
	}
	d.Logf("%s%s", d.out.String(), d.err.String())
	return d.cmd.ProcessState.ExitCode()
}

// loaded is what the cniscope in the cluster's only Job holds.
func (c *cluster) loaded() scope.BPF {
	c.Helper()
	var all struct{ Items []pod }
	harness.Check(c, c.api.Get(c.ctx, "/api/v1/namespaces/default/pods?labelSelector=batch.kubernetes.io/job-name", &all))
	harness.Equal(c, len(all.Items), 1, "pods of Jobs")
	loaded := scope.BPFOf(c, c.pid(&all.Items[0]))
	if len(loaded.Programs) == 0 {
		c.Error("cniscope holds no BPF program")
	}
	return loaded
}

// nodeState lists API objects, processes, mounts and files.
func (c *cluster) nodeState() string {
	c.Helper()
	lines := strings.Split(c.admin("get", "jobs,pods,configmaps,serviceaccounts,roles,clusterroles", "-A", "-o", "name"), "\n")
	all, err := c.rig.Processes()
	harness.Check(c, err)
	for _, p := range all {
		lines = append(lines, "process "+p.Name)
		if p.Name == "containerd" {
			mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", p.PID))
			harness.Check(c, err)
			for line := range strings.Lines(string(mounts)) {
				lines = append(lines, "mount "+strings.Fields(line)[4])
			}
		}
	}
	for _, pattern := range []string{"/run/cniscope", "/run/nri/*", "/run/cniscope-read", "/sys/fs/bpf/*", filepath.Dir(c.rig.NRISocket()) + "/*", filepath.Join(c.rig.Dir(), "kubelet", "root", "pods", "*")} {
		files, err := filepath.Glob(pattern)
		harness.Check(c, err)
		lines = append(lines, files...)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func (c *cluster) asBefore(before string, d *debugging) {
	c.Helper()
	if c.Failed() {
		return
	}
	_, _ = c.api.Do(c.ctx, "DELETE", "/api/v1/namespaces/default/pods/debugged", nil)
	harness.Eventually(c, func() error {
		if now := c.nodeState(); now != before {
			return fmt.Errorf("the node is not as before:\n%s\n--- before\n%s", now, before)
		}
		return nil
	})
	harness.Eventually(c, d.loaded.Gone)
}
