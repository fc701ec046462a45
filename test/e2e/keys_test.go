//go:build linux

package e2e

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/cniscope/cniscope/test/harness"
)

// keys are a test's CA, server certificate and client files as PEM: ca.crt, client.crt and client.key.
type keys struct {
	dir string
	// mutual requires client certificates.
	mutual credentials.TransportCredentials
}

func newKeys(t *testing.T) keys {
	t.Helper()
	k := keys{dir: t.TempDir()}
	ca, err := harness.NewAuthority()
	harness.Check(t, err)
	server, err := ca.Issue("cniscope-server", time.Hour)
	harness.Check(t, err)
	client, err := ca.Issue("cniscope-client", time.Hour)
	harness.Check(t, err)
	harness.Check(t, os.WriteFile(k.pem("ca.crt"), ca.PEM(), 0o600))
	harness.Check(t, harness.WritePEM(k.dir, "client", client))
	k.mutual = credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{server}, ClientCAs: ca.Pool(), ClientAuth: tls.RequireAndVerifyClientCert,
	})
	return k
}

func (k keys) pem(name string) string { return filepath.Join(k.dir, name) }
