//go:build linux

package fleet

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/kube"
)

// The tokens of an administrator, and of a user with only the rights that a test grants.
const (
	adminToken = "admin"
	janeToken  = "jane"
)

type controlPlane struct {
	*kube.API
	address string
	dir     string
}

// startControlPlane starts both until the test ends.
func startControlPlane(t *testing.T) *controlPlane {
	t.Helper()
	apiserver, etcd := "../tools/bin/kube-apiserver", "/usr/bin/etcd"
	for _, program := range []string{apiserver, etcd} {
		if _, err := os.Stat(program); err != nil {
			t.Skipf("%s is not there: run `make tools-kubernetes` first", program)
		}
	}
	dir := t.TempDir()
	client, peer, server := harness.Address(t), harness.Address(t), harness.Address(t)
	c := &controlPlane{API: kube.New(server, adminToken), address: server, dir: dir}
	harness.Beside(t, exec.Command(etcd, kube.EtcdArgs(dir, client, peer)...))
	harness.Eventually(t, func() error { return kube.Reaches(t.Context(), client) })
	tokens := filepath.Join(dir, "tokens")
	harness.Check(t, os.WriteFile(tokens, fmt.Appendf(nil, "%s,admin,admin,system:masters\n%s,jane,jane\n", adminToken, janeToken), 0o600))
	accounts := harness.Must(kube.AccountArgs(dir))(t)
	host, port, err := net.SplitHostPort(server)
	harness.Check(t, err)
	harness.Beside(t, exec.Command(apiserver, append(accounts, "--etcd-servers=http://"+client, "--bind-address="+host, "--secure-port="+port, "--cert-dir="+dir,
		"--endpoint-reconciler-type=none", "--advertise-address=192.0.2.1", "--service-cluster-ip-range=10.96.0.0/16",
		"--token-auth-file="+tokens, "--authorization-mode=RBAC",
		// The test creates pods without a controller, and ServiceAccounts without tokens.
		"--disable-admission-plugins=ServiceAccount",
		"--kubelet-preferred-address-types=InternalIP")...))
	harness.Eventually(t, func() error {
		_, err := c.Do(context.Background(), "GET", "/readyz", nil)
		return err
	})
	return c
}

func (c *controlPlane) kubeconfig(t *testing.T, token string) string {
	t.Helper()
	file := filepath.Join(c.dir, token+".config")
	harness.Check(t, os.WriteFile(file, []byte(kube.Config(c.address, token, "shop")), 0o600))
	return file
}
