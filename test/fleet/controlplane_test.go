//go:build linux

package fleet

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/kube"
	"github.com/cniscope/cniscope/test/tied"
)

// who may ask the API server: whoever may do anything, and a user who may do what a test gives her.
const (
	adminToken = "admin"
	janeToken  = "jane"
)

// controlPlane is a real etcd and a real kube-apiserver on loopback.
type controlPlane struct {
	*kube.API
	address string
	dir     string
}

// startControlPlane starts both; they end with the test.
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
	run(t, etcd, "--name=node", "--data-dir="+filepath.Join(dir, "etcd"),
		"--listen-client-urls=http://"+client, "--advertise-client-urls=http://"+client,
		"--listen-peer-urls=http://"+peer, "--initial-advertise-peer-urls=http://"+peer, "--initial-cluster=node=http://"+peer, "--unsafe-no-fsync")
	harness.Eventually(t, func() error {
		conn, err := net.Dial("tcp", client)
		if err == nil {
			_ = conn.Close()
		}
		return err
	})
	write := func(name, content string) string {
		file := filepath.Join(dir, name)
		harness.Check(t, os.WriteFile(file, []byte(content), 0o600))
		return file
	}
	tokens := write("tokens", fmt.Sprintf("%s,admin,admin,system:masters\n%s,jane,jane\n", adminToken, janeToken))
	key := write("service-accounts.pem", key(t))
	host, port, err := net.SplitHostPort(server)
	harness.Check(t, err)
	run(t, apiserver, "--etcd-servers=http://"+client, "--bind-address="+host, "--secure-port="+port, "--cert-dir="+dir,
		"--endpoint-reconciler-type=none", "--advertise-address=192.0.2.1", "--service-cluster-ip-range=10.96.0.0/16",
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file="+key, "--service-account-signing-key-file="+key,
		"--token-auth-file="+tokens, "--authorization-mode=RBAC",
		// Pods are made here without a controller, and their ServiceAccounts without tokens.
		"--disable-admission-plugins=ServiceAccount",
		"--kubelet-preferred-address-types=InternalIP")
	harness.Eventually(t, func() error {
		_, err := c.Do(context.Background(), "GET", "/readyz", nil)
		return err
	})
	return c
}

// run starts a program that ends with the test; its output is in the log if the test fails.
func run(t *testing.T, program string, args ...string) {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), filepath.Base(program)+".log"))
	harness.Check(t, err)
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = file, file
	harness.Check(t, tied.Start(cmd))
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = file.Close()
		if said, _ := os.ReadFile(file.Name()); t.Failed() {
			t.Logf("%s: …%s", program, said[max(0, len(said)-4000):])
		}
	})
}

// key is one that tokens of ServiceAccounts are signed with.
func key(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	harness.Check(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	harness.Check(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// kubeconfig is that of whoever has a token.
func (c *controlPlane) kubeconfig(t *testing.T, token string) string {
	t.Helper()
	file := filepath.Join(c.dir, token+".config")
	harness.Check(t, os.WriteFile(file, []byte(fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c",
"clusters":[{"name":"c","cluster":{"server":"https://%s","insecure-skip-tls-verify":true}}],
"users":[{"name":"u","user":{"token":%q}}],
"contexts":[{"name":"c","context":{"cluster":"c","user":"u","namespace":"shop"}}]}`, c.address, token)), 0o600))
	return file
}
