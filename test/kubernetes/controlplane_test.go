//go:build linux

package kubernetes

import (
	"context"
	"crypto/rand"
	"encoding/hex"
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

// Clients of the apiserver.
const (
	admin     = "admin"
	nodeToken = "node"
)

// Users: one who may edit one namespace, an operator of cniscope, and another.
const (
	developer = "developer"
	operator  = "operator"
	somebody  = "somebody"
)

var people = []string{developer, operator, somebody}

func (c *cluster) startControlPlane() {
	c.Helper()
	dir := filepath.Join(c.rig.Dir(), "control-plane")
	harness.Check(c, os.Mkdir(dir, 0o700))
	client, peer, server := harness.Address(c), harness.Address(c), harness.Address(c)
	c.beside("etcd", func(ctx context.Context) error { return kube.Reaches(ctx, client) },
		append([]string{c.etcd()}, kube.EtcdArgs(dir, client, peer)...)...)

	c.tokens = map[string]string{admin: secret(c), nodeToken: secret(c)}
	tokens := fmt.Sprintf("%s,admin,admin,system:masters\n%s,system:node:%s,node,system:nodes\n", c.tokens[admin], c.tokens[nodeToken], c.node)
	for _, person := range people {
		c.tokens[person] = secret(c)
		tokens += fmt.Sprintf("%s,%s,%s\n", c.tokens[person], person, person)
	}
	harness.Check(c, os.WriteFile(filepath.Join(dir, "tokens"), []byte(tokens), 0o600))
	accounts, err := kube.AccountArgs(dir)
	harness.Check(c, err)
	host, port, err := net.SplitHostPort(server)
	harness.Check(c, err)
	c.api = kube.New(server, c.tokens[admin])
	c.server = server
	c.beside("kube-apiserver", func(ctx context.Context) error {
		_, err := c.api.Do(ctx, "GET", "/readyz", nil)
		return err
	},
		append(append([]string{c.tool("kube-apiserver")}, accounts...), "--etcd-servers=http://"+client, "--bind-address="+host, "--secure-port="+port, "--cert-dir="+dir,
			"--advertise-address="+c.address, "--endpoint-reconciler-type=none", "--kubelet-preferred-address-types=InternalIP", "--service-cluster-ip-range=10.96.0.0/16",
			"--token-auth-file="+filepath.Join(dir, "tokens"), "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction")...)
}

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

func secret(c *cluster) string {
	b := make([]byte, 16)
	_, err := rand.Read(b)
	harness.Check(c, err)
	return hex.EncodeToString(b)
}

func hostPort(url string) string { return strings.TrimPrefix(url, "http://") }
