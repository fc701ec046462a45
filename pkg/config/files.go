package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/cniscope/cniscope/pkg/disk"
)

// TLS returns the endpoint's TLS configuration, nil for plain text. Each connection reads the client certificate
// again; the CA is read once.
func (o OTLP) TLS() (*tls.Config, error) {
	if _, plain := o.Target(); plain {
		return nil, nil
	}
	on := disk.System()
	for key, f := range o.files(on) {
		return nil, fmt.Errorf("export.otlp.%s: %s: %s", key, f.What, f.Remedy)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.CA != "" {
		pool, err := readCA(on, o.CA)
		if err != nil {
			return nil, fmt.Errorf("export.otlp.ca: %w", err)
		}
		c.RootCAs = pool
	}
	if o.Cert != "" {
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return readPair(on, o.Cert, o.Key)
		}
	}
	return c, nil
}

func (o OTLP) files(on disk.FS) map[string]*Problem {
	faults := map[string]*Problem{}
	if o.CA != "" {
		if _, err := readCA(on, o.CA); err != nil {
			faults["ca"] = wrong("name a readable PEM file of the certificates to trust", "%v", err)
		}
	}
	switch {
	case o.Cert != "" && o.Key == "":
		faults["cert"] = wrong("set key too, the certificate's private key", "is there without a key")
	case o.Cert == "" && o.Key != "":
		faults["key"] = wrong("set cert too, the key's certificate", "is there without a certificate")
	case o.Cert != "":
		if _, err := readPair(on, o.Cert, o.Key); err != nil {
			const remedy = "name the readable PEM files of a certificate, in cert, and of its private key, in key"
			faults["cert"] = wrong(remedy, "%v", err)
		}
	}
	return faults
}

func readCA(on disk.FS, path string) (*x509.CertPool, error) {
	pem, err := disk.ReadRegular(on, path, maxFile)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no PEM certificate", quoted(path))
	}
	return pool, nil
}

func readPair(on disk.FS, cert, key string) (*tls.Certificate, error) {
	certPEM, err := disk.ReadRegular(on, cert, maxFile)
	keyPEM, keyErr := disk.ReadRegular(on, key, maxFile)
	if err := errors.Join(err, keyErr); err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		// crypto/tls errors do not contain file content.
		return nil, fmt.Errorf("%s and %s: %w", quoted(cert), quoted(key), err)
	}
	return &pair, nil
}

// maxFile bounds the options' text in bytes, as NRI's Configure and a ConfigMap do (1 MiB).
const maxFile = 1 << 20
