package kube

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// Reaches returns nil if a server listens on TCP at address.
func Reaches(ctx context.Context, address string) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}

// EtcdArgs returns the arguments of an etcd of one member with its data below dir.
func EtcdArgs(dir, client, peer string) []string {
	return []string{
		"--name=node", "--data-dir=" + filepath.Join(dir, "etcd"), "--unsafe-no-fsync",
		"--listen-client-urls=http://" + client, "--advertise-client-urls=http://" + client,
		"--listen-peer-urls=http://" + peer, "--initial-advertise-peer-urls=http://" + peer, "--initial-cluster=node=http://" + peer,
	}
}

// AccountArgs returns the arguments of an API server that signs the tokens of service accounts. It writes the key to
// dir/service-accounts.pem.
func AccountArgs(dir string) ([]string, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "service-accounts.pem")
	return []string{
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=" + file, "--service-account-signing-key-file=" + file,
	}, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600)
}

// Config returns a kubeconfig for the API server at host:port, with a token. The namespace may be empty.
func Config(server, token, namespace string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"rig",
"clusters":[{"name":"rig","cluster":{"server":"https://%s","insecure-skip-tls-verify":true}}],
"users":[{"name":"rig","user":{"token":%q}}],
"contexts":[{"name":"rig","context":{"cluster":"rig","user":"rig","namespace":%q}}]}`, server, token, namespace)
}
