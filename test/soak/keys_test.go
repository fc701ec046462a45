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

// year is longer than any soak.
const year = 365 * 24 * time.Hour

// keys are a CA of the soak's own, a server that it signed, and a client whose certificate may be renewed in place.
type keys struct {
	dir    string
	ca     *harness.Authority
	pool   *x509.CertPool
	server tls.Certificate

	mu     sync.Mutex
	serial *big.Int // of the client's certificate of now
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

// rotate renews the client's certificate in place: from now on only the new one is taken.
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

// pem is one of their files.
func (k *keys) pem(name string) string { return filepath.Join(k.dir, name) }
