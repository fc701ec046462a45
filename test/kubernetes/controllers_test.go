//go:build linux

package kubernetes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/cniscope/cniscope/test/chart"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/kube"
	"github.com/cniscope/cniscope/test/rig"
)

func startWithControllers(t *testing.T, o rig.Options) *cluster {
	c := start(t, o)
	c.controllers()
	return c
}

func (c *cluster) controllers() {
	c.Helper()
	dir := filepath.Join(c.rig.Dir(), "control-plane")
	kubeconfig := c.adminConfig()
	c.beside("kube-scheduler", func(context.Context) error { return nil },
		c.tool("kube-scheduler"), "--kubeconfig="+kubeconfig, "--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig,
		"--leader-elect=false", "--secure-port=0")
	c.beside("kube-controller-manager", func(ctx context.Context) error {
		_, err := c.api.Do(ctx, "GET", "/api/v1/namespaces/default/serviceaccounts/default", nil)
		return err
	},
		c.tool("kube-controller-manager"), "--kubeconfig="+kubeconfig, "--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig,
		"--leader-elect=false", "--secure-port=0", "--concurrent-gc-syncs=2",
		"--service-account-private-key-file="+filepath.Join(dir, "service-accounts.pem"), "--root-ca-file="+filepath.Join(dir, "apiserver.crt"))
}

func (c *cluster) adminConfig() string {
	c.Helper()
	return c.configOf(admin)
}

func (c *cluster) configOf(person string) string {
	c.Helper()
	file := filepath.Join(c.rig.Dir(), "control-plane", person+".json")
	harness.Check(c, os.WriteFile(file, []byte(kube.Config(c.server, c.tokens[person], "")), 0o600))
	return file
}

func (c *cluster) helm() *chart.Helm {
	c.Helper()
	h := helmOf(c)
	h.Env = append(h.Env, "KUBECONFIG="+c.adminConfig())
	return h
}

func (c *cluster) daemonPod(namespace, release string, done func(*pod) error) (found *pod) {
	c.Helper()
	harness.Eventually(c, func() error {
		var all struct{ Items []pod }
		if err := c.api.Get(c.ctx, "/api/v1/namespaces/"+namespace+"/pods?labelSelector=app.kubernetes.io/instance="+release, &all); err != nil {
			return err
		}
		var living []*pod
		for i := range all.Items {
			if all.Items[i].Metadata.DeletionTimestamp == "" {
				living = append(living, &all.Items[i])
			}
		}
		if len(living) != 1 {
			return fmt.Errorf("%d pods are of release %s, not one", len(living), release)
		}
		found = living[0]
		return done(found)
	})
	return found
}
