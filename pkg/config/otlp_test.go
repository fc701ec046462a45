package config

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestTarget(t *testing.T) {
	tests := []struct {
		endpoint string
		insecure bool
		want     string
		plain    bool
	}{
		{"", false, "", false},
		{"http://127.0.0.1:4317", false, "127.0.0.1:4317", true},
		{"http://[::1]:4317/", false, "[::1]:4317", true},
		{"https://a.example:443", false, "a.example:443", false},
		{"https://a.example:443", true, "a.example:443", false}, // the scheme is stronger
		{"a.example:4317", false, "a.example:4317", false},
		{"a.example:4317", true, "a.example:4317", true},
	}
	for _, tt := range tests {
		if f := checkEndpoint(tt.endpoint); f != nil {
			t.Errorf("%s: %s", tt.endpoint, f.what)
		}
		got, plain := OTLP{Endpoint: tt.endpoint, Insecure: tt.insecure}.Target()
		if got != tt.want || plain != tt.plain {
			t.Errorf("%s: %s, plain %t", tt.endpoint, got, plain)
		}
	}
}

func TestTheCertificateIsReadAnewForEveryConnection(t *testing.T) {
	dir := t.TempDir()
	o := OTLP{Endpoint: "https://a:1", CA: filepath.Join(dir, "ca.pem"), Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	writePair(t, o.Cert, o.Key, 1)
	writePair(t, o.CA, filepath.Join(dir, "ca-key.pem"), 2)

	c, err := o.TLS()
	if err != nil {
		t.Fatal(err)
	}
	serial := func() int64 {
		pair, err := c.GetClientCertificate(&tls.CertificateRequestInfo{})
		if err != nil {
			t.Fatal(err)
		}
		return pair.Leaf.SerialNumber.Int64()
	}
	if c.RootCAs == nil || serial() != 1 {
		t.Errorf("roots %v, serial %d", c.RootCAs, serial())
	}
	writePair(t, o.Cert, o.Key, 3)
	if serial() != 3 {
		t.Error("the old certificate is still used")
	}
}

func TestPlainTextHasNoTLS(t *testing.T) {
	c, err := OTLP{Endpoint: "http://a:1", CA: "/not/there"}.TLS()
	if c != nil || err != nil {
		t.Errorf("%v, %v", c, err)
	}
}

func TestFilesThatAreNotCertificatesAreNamed(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.pem")
	if err := os.WriteFile(bad, []byte("hunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		`ca = "` + bad + `"`:                                "bad.pem\" holds no PEM certificate",
		`ca = "` + dir + `"`:                                "is not a regular file",
		`cert = "` + bad + `"` + "\nkey = \"" + bad + `"`:   "export.otlp.cert: ",
		`key = "` + bad + `"`:                               "export.otlp.key: is there without a certificate: set cert too",
		`cert = "/not/there"` + "\nkey = \"/nor/this\"":     "no such file",
		`cert = "` + bad + `"` + "\nkey = \"/dev/urandom\"": "is not a regular file",
	} {
		_, err := Parse("f.toml", []byte("[export.otlp]\n"+text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func writePair(t *testing.T, cert, key string, serial int64) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{
		cert: {Type: "CERTIFICATE", Bytes: der},
		key:  {Type: "PRIVATE KEY", Bytes: pkcs8},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
