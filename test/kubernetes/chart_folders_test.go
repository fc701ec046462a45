//go:build linux

package kubernetes

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

// Kubelet creates the mounted directories on a fresh node; they are removed with the pod, except the spool.
func TestChartLeavesNoFolder(t *testing.T) {
	c := startWithControllers(t, rig.Options{})
	h := c.helm()
	node := filepath.Join(c.rig.Dir(), "node") // visible to the node's first process
	harness.Check(c, os.Mkdir(node, 0o755))
	run, nri, spool := filepath.Join(node, "run"), filepath.Join(node, "nri"), filepath.Join(node, "spool")
	_, err := h.Run(c.ctx, "install", chartRelease, h.Chart, "--namespace", chartNamespace, "--create-namespace",
		"--set", fmt.Sprintf("state.hostPath=%s,nri.socket=%s/nri.sock,spool.hostPath=%s", run, nri, spool))
	harness.Check(c, err)
	scope := c.daemonPod(chartNamespace, chartRelease, running)
	c.logged(scope, "observing CNI calls")
	for _, dir := range []string{run, nri, spool} {
		if _, err := os.Stat(dir); err != nil {
			t.Fatalf("kubelet has not made it: %v", err)
		}
	}
	if out, code := c.exec(scope, "/cniscope", "ps"); code != 0 {
		t.Errorf("ps ended with %d:\n%s", code, out)
	}
	_, err = h.Run(c.ctx, "uninstall", chartRelease, "--namespace", chartNamespace)
	harness.Check(c, err)
	for _, dir := range []string{run, nri} {
		harness.Eventually(c, func() error {
			_, err := os.Stat(dir)
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return cmp.Or(err, fmt.Errorf("%s is still there", dir))
		})
	}
	if _, err := os.Stat(spool); err != nil {
		t.Errorf("what waits on disk is gone: %v", err)
	}
}
