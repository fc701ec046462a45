//go:build linux

package soak

import (
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/cniscope/cniscope/test/harness"
)

const year = 365 * 24 * time.Hour

type keys struct {
	dir    string
	ca     *harness.Authority
	pool   *x509.CertPool
	server tls.Certificate

	mu     sync.Mutex
	serial *big.Int // of the current client certificate
}

func newKeys(dir string) (*keys, error) {
	ca, err := harness.NewAuthority()
	if err != nil {
		return nil, err
	}
	k := &keys{dir: dir, ca: ca, pool: ca.Pool()}
	if k.server, err = ca.Issue("soak-server", year); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := harness.Replace(k.pem("ca.crt"), ca.PEM()); err != nil {
		return nil, err
	}
	return k, k.rotate()
}

// rotate renews the client's certificate in place; the old one becomes invalid.
func (k *keys) rotate() error {
	client, err := k.ca.Issue("soak-client", year)
	if err != nil {
		return err
	}
	if err := harness.WritePEM(k.dir, "client", client); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.serial = client.Leaf.SerialNumber
	return nil
}

func (k *keys) pem(name string) string { return filepath.Join(k.dir, name) }
