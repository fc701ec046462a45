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
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/cniscope/cniscope/test/rig"
)

// authority signs the certificates of one test.
type authority struct {
	*testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// issue makes a certificate, and returns its PEM files.
func (a *authority) issue(name string, usage x509.ExtKeyUsage) (cert, key string) {
	a.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(a.T, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{usage}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
		template.ExtKeyUsage = nil
		parent, signer = template, private
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, private.Public(), signer)
	check(a.T, err)
	if a.cert == nil {
		a.cert, err = x509.ParseCertificate(der)
		check(a.T, err)
		a.key = private
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	check(a.T, err)
	dir := a.TempDir()
	cert, key = filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: pkcs8}} {
		check(a.T, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	}
	return cert, key
}

// A backend of many tenants asks for a certificate and a tenant. While cniscope has
// neither, what it kept waits; once somebody wrote them into its options, it arrives.
func TestMutualTLSAndATenant(t *testing.T) {
	s := setAlone(t, 5*time.Minute)
	a := &authority{T: t}
	ca, _ := a.issue("ca", x509.ExtKeyUsageAny)
	serverCert, serverKey := a.issue("server", x509.ExtKeyUsageServerAuth)
	cert, key := a.issue("client", x509.ExtKeyUsageClientAuth)
	pair, err := tls.LoadX509KeyPair(serverCert, serverKey)
	check(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)

	addr := nobody(t)
	r := receive(t, addr, &backend{tenant: "nodes"}, grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool,
	})))
	spool := fmt.Sprintf("[export.spool]\ndir = %q\n", filepath.Join(t.TempDir(), "spool"))
	otlp := fmt.Sprintf("[export.otlp]\nendpoint = \"https://%s\"\nca = %q\n", addr, ca)
	one := s.observe(spool + otlp)
	s.pod(rig.PodOptions{Namespace: "shop", Name: "web-0"})
	check(t, one.WaitLog(s.ctx, "the export fails and will be tried again", 1))

	with := func(more string) {
		t.Helper()
		check(t, one.SetOptions("[slow]\ncall = \"1us\"\n[sampling]\nper_second = 0\n"+quick+spool+otlp+more))
	}
	identity := fmt.Sprintf("cert = %q\nkey = %q\n", cert, key)
	with(identity)
	check(t, one.WaitLog(s.ctx, "export.otlp.cert", 1))
	if n := len(r.got()); n > 0 {
		t.Errorf("%d spans were taken without a tenant", n)
	}
	with(identity + "headers = { x-scope-orgid = \"nodes\" }\n")
	s.eventually(func() error {
		if n := len(only(r.got(), "call", "CNI ADD")); n != 2 {
			return fmt.Errorf("%d calls arrived", n)
		}
		return nil
	})
	if n := r.twice(); n > 0 {
		t.Errorf("%d spans arrived more than once", n)
	}
}
