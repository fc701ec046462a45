package webconfig

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/cniscope/cniscope/test/harness"
)

type authority struct {
	*testing.T
	*harness.Authority
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	a := harness.Must(harness.NewAuthority())(t)
	return authority{t, a}
}

// issue returns a certificate and its key as PEM.
func (a authority) issue(name string, valid time.Duration) (certificate, key []byte) {
	a.Helper()
	pair, err := a.Issue(name, valid)
	harness.Check(a.T, err)
	certificate, key, err = harness.PEM(pair)
	harness.Check(a.T, err)
	return certificate, key
}

type folder struct {
	*testing.T
	dir string
}

func newFolder(t *testing.T) folder { return folder{t, t.TempDir()} }

func (f folder) write(name, text string) string {
	f.Helper()
	path := filepath.Join(f.dir, name)
	harness.Check(f, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func (f folder) server(a authority, valid time.Duration) {
	f.Helper()
	certificate, key := a.issue("server", valid)
	f.write("tls.crt", string(certificate))
	f.write("tls.key", string(key))
	f.write("ca.crt", string(a.PEM()))
}

const (
	plainTLS = "tls_server_config:\n  cert_file: tls.crt\n  key_file: tls.key\n"
	mutual   = plainTLS + "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: ca.crt\n"
)

func users(t *testing.T, name, password string) string {
	t.Helper()
	hash := harness.Must(bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost))(t)
	return "basic_auth_users:\n  " + name + ": " + string(hash) + "\n"
}
