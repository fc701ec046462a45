package webconfig

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"
)

// authority signs certificates.
type authority struct {
	*testing.T
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{T: t}
	a.certificate, a.key, a.pem = a.make("authority", time.Hour, nil, nil)
	return a
}

func (a *authority) make(name string, valid time.Duration, by *x509.Certificate, with *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey, []byte) {
	a.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		a.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		NotBefore:   time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(valid),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if by == nil {
		by, with, c.IsCA, c.BasicConstraintsValid = c, key, true, true
	}
	der, err := x509.CreateCertificate(rand.Reader, c, by, &key.PublicKey, with)
	if err != nil {
		a.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		a.Fatal(err)
	}
	return parsed, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// issue returns a certificate and its key, as PEM.
func (a *authority) issue(name string, valid time.Duration) (certificate, key []byte) {
	a.Helper()
	_, private, certificate := a.make(name, valid, a.certificate, a.key)
	der, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		a.Fatal(err)
	}
	return certificate, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}

// folder is where a web configuration and its files are.
type folder struct {
	*testing.T
	dir string
}

func newFolder(t *testing.T) folder { return folder{t, t.TempDir()} }

func (f folder) write(name, text string) string {
	f.Helper()
	path := filepath.Join(f.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		f.Fatal(err)
	}
	return path
}

// server writes a certificate for the server, and the authority's.
func (f folder) server(a *authority, valid time.Duration) {
	f.Helper()
	certificate, key := a.issue("server", valid)
	f.write("tls.crt", string(certificate))
	f.write("tls.key", string(key))
	f.write("ca.crt", string(a.pem))
}

const (
	plainTLS = "tls_server_config:\n  cert_file: tls.crt\n  key_file: tls.key\n"
	mutual   = plainTLS + "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: ca.crt\n"
)

// users is the section that lets somebody in.
func users(t *testing.T, name, password string) string {
	t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	return "basic_auth_users:\n  " + name + ": " + string(hash) + "\n"
}
