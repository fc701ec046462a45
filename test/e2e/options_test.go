//go:build linux

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

// Mutual TLS, headers and compression, set at run time, and the same spans in a file that only root can read.
func TestOTLPOverTLSAndAFile(t *testing.T) {
	k, addr := newKeys(t), harness.Address(t)
	r := receive(t, addr, grpc.Creds(k.mutual))
	s := set(t, false, rig.Options{}, scope.Options{})
	destination := func(ca string) string {
		return fmt.Sprintf("[export.otlp]\nendpoint = %q\ncompression = \"gzip\"\ncert = %q\nkey = %q\nheaders = { authorization = \"Bearer x\", x-scope-orgid = \"nodes\" }\n%s\n",
			"https://"+addr, k.pem("client.crt"), k.pem("client.key"), ca)
	}
	s.options(destination(""))
	s.pod(rig.PodOptions{Name: "web-0"})
	s.logged("certificate signed by unknown authority", 1)
	if got := r.got(); len(got) > 0 {
		t.Fatalf("%d spans went to a stranger", len(got))
	}
	s.options(destination(fmt.Sprintf("ca = %q", k.pem("ca.crt"))))
	harness.Eventually(s, func() error {
		if len(only(of(r.got(), "web-0"), "call", "CNI ADD")) < 2 {
			return errors.New("web-0's setup has not arrived")
		}
		return nil
	})
	before := len(r.got())
	file := filepath.Join(t.TempDir(), "spans")
	s.options(destination(fmt.Sprintf("ca = %q\n[export.file]\npath = %q", k.pem("ca.crt"), file)))
	for i := range 3 {
		harness.Check(t, s.rig.RemovePod(s.ctx, s.pod(rig.PodOptions{Name: fmt.Sprintf("both-%d", i)})))
	}
	harness.Check(t, s.scope.Stop()) // flushes the queue

	sent, written := r.got()[before:], spansIn(t, file)
	if ids(sent) != ids(written) || len(only(sent, "call", "CNI ADD")) != 6 || len(only(sent, "call", "CNI DEL")) == 0 {
		t.Errorf("%d spans were sent, %d written, or not the same:\n%s\n%s", len(sent), len(written), ids(sent), ids(written))
	}
	t.Logf("%d spans sent, %d written", len(sent), len(written))
	info, err := os.Stat(file)
	harness.Check(t, err)
	harness.Equal(t, info.Mode(), 0o600, "the file's mode")
	harness.Equal(t, r.Compression, "gzip", "the last request's compression")
	harness.EqualSlices(t, append(r.Headers.Get("authorization"), r.Headers.Get("x-scope-orgid")...), []string{"Bearer x", "nodes"}, "its headers")
}

func (s *stage) options(toml string) {
	s.Helper()
	n := strings.Count(s.scope.LogText(), "msg=\"options changed\"")
	harness.Check(s.T, s.scope.SetOptions(toml+quick))
	s.logged("msg=\"options changed\"", n+1)
}
