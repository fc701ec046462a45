//go:build linux

package soak

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// keys are a CA of the soak's own, a server that it signed, and a client whose certificate may be renewed in place.
type keys struct {
	dir    string
	ca     *x509.Certificate
	caKey  *ecdsa.PrivateKey
	pool   *x509.CertPool
	server tls.Certificate

	mu     sync.Mutex
	serial *big.Int // of the client's certificate of now
	signed int64
}

func newKeys(dir string) (*keys, error) {
	k := &keys{dir: dir, pool: x509.NewCertPool()}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if _, err := k.sign("ca"); err != nil {
		return nil, err
	}
	k.pool.AddCert(k.ca)
	if _, err := k.sign("server"); err != nil {
		return nil, err
	}
	var err error
	if k.server, err = tls.LoadX509KeyPair(k.pem("server.crt"), k.pem("server.key")); err != nil {
		return nil, err
	}
	return k, k.rotate()
}

// rotate renews the client's certificate in place: from now on only the new one is taken.
func (k *keys) rotate() error {
	made, err := k.sign("client")
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.serial = made.SerialNumber
	return nil
}

// pem is one of their files.
func (k *keys) pem(name string) string { return filepath.Join(k.dir, name) }

// sign writes name.crt and name.key; the first is the CA.
func (k *keys) sign(name string) (*x509.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	k.signed++
	template := &x509.Certificate{
		SerialNumber: big.NewInt(k.signed), Subject: pkix.Name{CommonName: "soak-" + name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	ca, caKey := k.ca, k.caKey
	if ca == nil {
		ca, caKey = template, key
		template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca, &key.PublicKey, caKey)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	if k.ca == nil {
		k.ca, k.caKey = made, key
	}
	for file, block := range map[string]*pem.Block{
		name + ".crt": {Type: "CERTIFICATE", Bytes: der}, name + ".key": {Type: "EC PRIVATE KEY", Bytes: private},
	} {
		next := k.pem(file) + ".next"
		if err := os.WriteFile(next, pem.EncodeToMemory(block), 0o600); err != nil {
			return nil, err
		}
		if err := os.Rename(next, k.pem(file)); err != nil {
			return nil, err
		}
	}
	return made, nil
}
