//go:build linux

package e2e

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
	"testing"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/cniscope/cniscope/test/harness"
)

// keys are a CA, made for one test, a server that it signed, and a client: ca, server and
// client, each with .crt and .key, as PEM.
type keys struct {
	dir string
	// mutual is TLS for a server that asks its clients for a certificate of the CA.
	mutual credentials.TransportCredentials
}

func newKeys(t *testing.T) keys {
	t.Helper()
	k := keys{dir: t.TempDir()}
	ca, caKey := k.certificate(t, "ca", nil, nil)
	k.certificate(t, "server", ca, caKey)
	k.certificate(t, "client", ca, caKey)
	pair, err := tls.LoadX509KeyPair(k.pem("server.crt"), k.pem("server.key"))
	harness.Check(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(ca)
	k.mutual = credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
	})
	return k
}

// pem is one of their files.
func (k keys) pem(name string) string { return filepath.Join(k.dir, name) }

// certificate writes name.crt and name.key; without a CA it is one.
func (k keys) certificate(t *testing.T, name string, ca *x509.Certificate, caKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	harness.Check(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "cniscope-" + name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	if ca == nil {
		ca, caKey = template, key
		template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca, &key.PublicKey, caKey)
	harness.Check(t, err)
	private, err := x509.MarshalECPrivateKey(key)
	harness.Check(t, err)
	harness.Check(t, os.WriteFile(k.pem(name+".crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	harness.Check(t, os.WriteFile(k.pem(name+".key"), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}), 0o600))
	made, err := x509.ParseCertificate(der)
	harness.Check(t, err)
	return made, key
}
