//go:build linux

package e2e

import (
	"fmt"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

// Without the certificate and tenant that the backend requires, the queue waits; with them it arrives.
func TestMutualTLSAndATenant(t *testing.T) {
	s := setAlone(t)
	k, addr := newKeys(t), harness.Address(t)
	r := receive(t, addr, &backend{tenant: "nodes"}, grpc.Creds(k.mutual))
	options := fmt.Sprintf("[export.spool]\ndir = %q\n[export.otlp]\nendpoint = \"https://%s\"\nca = %q\n",
		filepath.Join(t.TempDir(), "spool"), addr, k.pem("ca.crt"))
	one := s.observe(options)
	s.pod(rig.PodOptions{Namespace: "shop", Name: "web-0"})
	harness.Check(t, one.WaitLog(s.ctx, "export failed, retrying", 1))

	options += fmt.Sprintf("cert = %q\nkey = %q\n", k.pem("client.crt"), k.pem("client.key"))
	harness.Check(t, one.SetOptions(verbose+options))
	harness.Check(t, one.WaitLog(s.ctx, "export.otlp.cert", 1))
	harness.Eventually(s, func() error { return r.refusedSome() })
	if n := len(r.got()); n > 0 {
		t.Errorf("%d spans were taken without a tenant", n)
	}
	options += "headers = { x-scope-orgid = \"nodes\" }\n"
	harness.Check(t, one.SetOptions(verbose+options))
	harness.Eventually(s, func() error {
		if n := len(only(r.got(), "call", "CNI ADD")); n != 2 {
			return fmt.Errorf("%d calls arrived", n)
		}
		return nil
	})
	if n := r.twice(); n > 0 {
		t.Errorf("%d spans arrived more than once", n)
	}
}
