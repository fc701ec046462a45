package webconfig

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
)

func TestWhatAFileAsksFor(t *testing.T) {
	f := newFolder(t)
	f.server(newAuthority(t), time.Hour)
	for text, want := range map[string]Summary{
		"":                            {},
		plainTLS:                      {TLS: true},
		mutual:                        {TLS: true, ClientCertificates: true},
		users(t, "a", "b"):            {Users: true},
		plainTLS + users(t, "a", "b"): {TLS: true, Users: true},
		"rate_limit:\n  interval: 1s\n  burst: 1000\n":          {},
		plainTLS + "  client_auth_type: RequireAnyClientCert\n": {TLS: true}, // any client can create one
	} {
		got, err := Check(f.write("web.yml", text))
		if got.Expires.IsZero() == got.TLS {
			t.Errorf("%q: expires %v", text, got.Expires)
		}
		got.Expires = time.Time{}
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", text, got, err, want)
		}
	}
}

func TestMistakes(t *testing.T) {
	f := newFolder(t)
	a := newAuthority(t)
	f.server(a, time.Hour)
	other, _ := a.issue("other", time.Hour)
	f.write("other.crt", string(other))
	f.write("empty", "")
	harness.Check(t, os.Mkdir(filepath.Join(f.dir, "folder"), 0o700))
	f.write("long", strings.Repeat("#", maxFile+1))
	for text, say := range map[string]string{
		"tls_config:\n  cert_file: tls.crt\n":                             "line 1: field tls_config not found",
		"tls_server_config:\n  cert_file: tls.crt\n  keyfile: tls.key\n":  "line 3: field keyfile not found",
		"tls_server_config:\n  cert_file: tls.crt\n":                      "missing one of key or key_file",
		"tls_server_config:\n  cert_file: none\n  key_file: tls.key\n":    "there is no file " + filepath.Join(f.dir, "none"),
		"tls_server_config:\n  cert_file: folder\n  key_file: tls.key\n":  "is not a regular file",
		"tls_server_config:\n  cert_file: long\n  key_file: tls.key\n":    "longer than 1048576 bytes",
		"tls_server_config:\n  cert_file: empty\n  key_file: tls.key\n":   "failed to find any PEM data",
		"tls_server_config:\n  cert_file: other.crt\n  key_file: tls.key": "private key does not match public key",
		plainTLS + "  client_ca_file: ca.crt\n":                           "without a Client Auth Policy",
		plainTLS + "  client_auth_type: RequireAndVerifyClientCert\n":     "no client_ca_file",
		strings.Replace(mutual, "ca.crt", "empty", 1):                     "contains no PEM certificate",
		plainTLS + "  client_auth_type: Require\n":                        "invalid ClientAuth",
		plainTLS + "  min_version: TLS9\n":                                "unknown TLS version",
		"basic_auth_users:\n  prometheus: hunter2hunter2\n":               "not a bcrypt hash",
		"basic_auth_users: hunter2hunter2\n":                              "line 1: cannot unmarshal",
		"basic_auth_users:\n\t- x\n":                                      "line 2",
		"http_server_config:\n  headers:\n    X-Mine: y\n":                "can not be configured",
		"hunter2hunter2":         "line 1",
		"{":                      "line 1",
		"a: &a [*a]\nb: [*a,*a]": "",
	} {
		_, err := Check(f.write("web.yml", text))
		if err == nil {
			t.Errorf("%q is taken", text)
			continue
		}
		if said := err.Error(); !strings.Contains(said, say) || strings.Contains(said, "hunter2") ||
			strings.Contains(said, "\n") || strings.Contains(said, "web.Config") {
			t.Errorf("%q: %q, want %q", text, said, say)
		}
	}
	for path, say := range map[string]string{
		filepath.Join(f.dir, "none"):   "there is no file",
		filepath.Join(f.dir, "folder"): "not a regular file",
		filepath.Join(f.dir, "long"):   "longer than 1048576 bytes",
		"/dev/zero":                    "not a regular file",
	} {
		if _, err := Check(path); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%s: %v, want %q", path, err, say)
		}
	}
}

// Valid, but worth a warning.
func TestAnExposedKeyAndAnExpiredCertificate(t *testing.T) {
	f := newFolder(t)
	f.server(newAuthority(t), -time.Hour)
	key := filepath.Join(f.dir, "tls.key")
	harness.Check(t, os.Chmod(key, 0o644))
	s, err := Check(f.write("web.yml", plainTLS))
	if err != nil || s.Exposed != key || !s.Expires.Before(time.Now()) {
		t.Errorf("%+v, %v", s, err)
	}
}
