package config

import (
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
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
		{"https://[::1]:4318/v1/traces", true, "[::1]:4318", false},
		{"https://a.example:443", false, "a.example:443", false},
		{"https://a.example:443", true, "a.example:443", false}, // the scheme has precedence
		{"https://a.example", false, "a.example:443", false},
		{"http://[::1]/v1/traces", false, "[::1]:80", true},
		{"a.example:4317", false, "a.example:4317", false},
		{"a.example:4317", true, "a.example:4317", true},
	}
	for _, tt := range tests {
		o, err := Parse("f.toml", []byte("export.otlp.endpoint = "+quote(tt.endpoint)))
		if path := o.Export.OTLP.Path(); err != nil || (path != "") != strings.HasSuffix(tt.endpoint, "/v1/traces") {
			t.Errorf("%s: path %s, %v", tt.endpoint, path, err)
		}
		got, plain := OTLP{Endpoint: tt.endpoint, Insecure: tt.insecure}.Target()
		if got != tt.want || plain != tt.plain {
			t.Errorf("%s: %s, plain %t", tt.endpoint, got, plain)
		}
	}
}

func TestTheCertificateIsReadAnewForEveryConnection(t *testing.T) {
	dir := t.TempDir()
	authority := harness.Must(harness.NewAuthority())(t)
	o := OTLP{
		Endpoint: "https://a:1", CA: filepath.Join(dir, "ca.pem"),
		Cert: filepath.Join(dir, "cniscope.crt"), Key: filepath.Join(dir, "cniscope.key"),
	}
	harness.Check(t, os.WriteFile(o.CA, authority.PEM(), 0o600))
	var c *tls.Config
	for _, name := range []string{"first", "renewed"} {
		pair, err := authority.Issue(name, time.Hour)
		harness.Check(t, errors.Join(err, harness.WritePEM(dir, "cniscope", pair)))
		if c == nil {
			c = harness.Must(o.TLS())(t)
		}
		got := harness.Must(c.GetClientCertificate(&tls.CertificateRequestInfo{}))(t)
		if !got.Leaf.Equal(pair.Leaf) {
			t.Errorf("the certificate of %s is used, not that of %s", got.Leaf.Subject, name)
		}
	}
	if !c.RootCAs.Equal(authority.Pool()) {
		t.Error("other authorities are believed than the one that is named")
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
	harness.Check(t, os.WriteFile(bad, []byte("hunter2"), 0o600))
	for text, want := range map[string]string{
		`ca = "` + bad + `"`:                                "bad.pem\" holds no PEM certificate",
		`ca = "` + dir + `"`:                                "is not a regular file",
		`cert = "` + bad + `"` + "\nkey = \"" + bad + `"`:   "export.otlp.cert: ",
		`key = "` + bad + `"`:                               "export.otlp.key: is there without a certificate; set cert too",
		`cert = "/not/there"` + "\nkey = \"/nor/this\"":     "no such file",
		`cert = "` + bad + `"` + "\nkey = \"/dev/urandom\"": "is not a regular file",
	} {
		refused(t, Default(), "[export.otlp]\n"+text, want)
	}
}
