package harness

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Authority is a certificate authority for a test.
type Authority struct{ own tls.Certificate }

// NewAuthority returns an Authority that is valid for a year.
func NewAuthority() (*Authority, error) {
	a := &Authority{}
	var err error
	a.own, err = a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().AddDate(1, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	return a, err
}

// Issue returns a certificate for a server at 127.0.0.1, ::1 or name, or for a client of that name. It is valid from
// two hours ago until valid from now; with valid < 0 it has expired.
func (a *Authority) Issue(name string, valid time.Duration) (tls.Certificate, error) {
	return a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(valid), DNSNames: []string{name},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
}

// Pool returns a pool with only the authority's certificate.
func (a *Authority) Pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.own.Leaf)
	return p
}

// PEM returns the authority's certificate.
func (a *Authority) PEM() []byte { return encoded("CERTIFICATE", a.own.Certificate[0]) }

func (a *Authority) sign(c *x509.Certificate) (tls.Certificate, error) {
	key, err1 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	serial, err2 := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 64))
	if err := errors.Join(err1, err2); err != nil {
		return tls.Certificate{}, err
	}
	c.SerialNumber, c.NotBefore = serial, time.Now().Add(-2*time.Hour)
	by, with := a.own.Leaf, a.own.PrivateKey
	if by == nil {
		by, with = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, by, &key.PublicKey, with)
	if err != nil {
		return tls.Certificate{}, err
	}
	leaf, err := x509.ParseCertificate(der)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, err
}

// PEM returns a certificate and its key.
func PEM(pair tls.Certificate) (certificate, key []byte, err error) {
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	return encoded("CERTIFICATE", pair.Certificate[0]), encoded("PRIVATE KEY", der), err
}

// WritePEM writes or replaces name.crt and name.key in a directory.
func WritePEM(dir, name string, pair tls.Certificate) error {
	certificate, key, err := PEM(pair)
	if err != nil {
		return err
	}
	return errors.Join(Replace(filepath.Join(dir, name+".crt"), certificate), Replace(filepath.Join(dir, name+".key"), key))
}

// Replace replaces a file atomically.
func Replace(file string, data []byte) error {
	next := file + ".next"
	if err := os.WriteFile(next, data, 0o600); err != nil {
		return err
	}
	return os.Rename(next, file)
}

func encoded(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
