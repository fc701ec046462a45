//go:build linux

package kubernetes

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/kube"
	"github.com/cniscope/cniscope/test/rig"
)

// Who speaks to the apiserver: we, and the node.
const (
	admin     = "admin"
	nodeToken = "node"
)

// Who may do what they are given a right to: a developer of one namespace, an operator of cniscope, and somebody.
const (
	developer = "developer"
	operator  = "operator"
	somebody  = "somebody"
)

var people = []string{developer, operator, somebody}

// startControlPlane starts etcd and kube-apiserver on loopback.
func (c *cluster) startControlPlane() {
	c.Helper()
	dir := filepath.Join(c.rig.Dir(), "control-plane")
	harness.Check(c, os.Mkdir(dir, 0o700))
	client, peer, server := harness.Address(c), harness.Address(c), harness.Address(c)
	c.beside("etcd", func(ctx context.Context) error { return dial(ctx, client) },
		c.etcd(), "--name=node", "--data-dir="+filepath.Join(dir, "etcd"),
		"--listen-client-urls=http://"+client, "--advertise-client-urls=http://"+client,
		"--listen-peer-urls=http://"+peer, "--initial-advertise-peer-urls=http://"+peer, "--initial-cluster=node=http://"+peer,
		"--unsafe-no-fsync")

	c.tokens = map[string]string{admin: secret(c), nodeToken: secret(c)}
	tokens := fmt.Sprintf("%s,admin,admin,system:masters\n%s,system:node:%s,node,system:nodes\n", c.tokens[admin], c.tokens[nodeToken], c.node)
	for _, person := range people {
		c.tokens[person] = secret(c)
		tokens += fmt.Sprintf("%s,%s,%s\n", c.tokens[person], person, person)
	}
	harness.Check(c, os.WriteFile(filepath.Join(dir, "tokens"), []byte(tokens), 0o600))
	harness.Check(c, writeKey(filepath.Join(dir, "service-accounts.pem")))
	host, port, err := net.SplitHostPort(server)
	harness.Check(c, err)
	c.api = kube.New(server, c.tokens[admin])
	c.server = server
	c.beside("kube-apiserver", func(ctx context.Context) error {
		_, err := c.api.Do(ctx, "GET", "/readyz", nil)
		return err
	},
		c.tool("kube-apiserver"), "--etcd-servers=http://"+client, "--bind-address="+host, "--secure-port="+port, "--cert-dir="+dir,
		"--advertise-address="+c.address, "--endpoint-reconciler-type=none", "--kubelet-preferred-address-types=InternalIP", "--service-cluster-ip-range=10.96.0.0/16",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+filepath.Join(dir, "service-accounts.pem"),
		"--service-account-signing-key-file="+filepath.Join(dir, "service-accounts.pem"),
		"--token-auth-file="+filepath.Join(dir, "tokens"), "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction")
}

// etcd comes from Debian.
func (c *cluster) etcd() string {
	for _, path := range []string{"/usr/bin/etcd", "/usr/local/bin/etcd"} {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	c.Skip("etcd is not installed: run `make tools-kubernetes` first")
	return ""
}

func (c *cluster) tool(name string) string {
	dir, err := rig.Tools(name)
	if errors.Is(err, rig.ErrNoTools) {
		c.Skipf("%s is not built: run `make tools-kubernetes` first", name)
	}
	harness.Check(c, err)
	return filepath.Join(dir, name)
}

func dial(ctx context.Context, address string) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}

func secret(c *cluster) string {
	b := make([]byte, 16)
	_, err := rand.Read(b)
	harness.Check(c, err)
	return hex.EncodeToString(b)
}

// writeKey makes the key that service accounts' tokens are signed with.
func writeKey(path string) error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600)
}

// hostPort is the address of an OTLP endpoint, as a kubelet wants it.
func hostPort(url string) string { return strings.TrimPrefix(url, "http://") }
