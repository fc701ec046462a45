package webconfig

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cniscope/cniscope/test/harness"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type stage struct {
	folder
	site    *Site
	address string
	log     *strings.Builder
}

func newStage(f folder, text string) *stage {
	f.Helper()
	s := &stage{folder: f, log: new(strings.Builder)}
	ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "metrics") })
	remote := func(r *http.Request) string { return Source(r.RemoteAddr) }
	var err error
	if s.site, err = New(f.write("web.yml", text), ok, remote, slog.New(slog.NewTextHandler(s.log, nil))); err != nil {
		f.Fatal(err)
	}
	l := harness.Must(net.Listen("tcp", "127.0.0.1:0"))(f)
	s.address = l.Addr().String()
	if secure := s.site.TLS(); secure != nil {
		l = tls.NewListener(l, secure)
	}
	server := &http.Server{
		Handler: s.site, ReadHeaderTimeout: time.Minute,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0),
	}
	done := make(chan error)
	go func() { done <- server.Serve(l) }()
	f.Cleanup(func() {
		_ = server.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			f.Error(err)
		}
	})
	return s
}

func (s *stage) stale() {
	s.site.mu.Lock()
	defer s.site.mu.Unlock()
	s.site.read = time.Time{}
}

// ask returns the status or the error.
func (s *stage) ask(change func(*http.Request, *tls.Config)) string {
	s.Helper()
	scheme := "http://"
	if s.site.tls {
		scheme = "https://"
	}
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, scheme+s.address+"/metrics", nil)
	harness.Check(s, err)
	// A server of TLS 1.3 refuses a certificate after the client's handshake, when the request's write may fail first.
	config := &tls.Config{RootCAs: s.pool(), MaxVersion: tls.VersionTLS12}
	if change != nil {
		change(r, config)
	}
	client := http.Client{Timeout: time.Minute, Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   config,
	}}
	answer, err := client.Do(r)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.Status
}

func (s *stage) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	if data, err := os.ReadFile(filepath.Join(s.dir, "ca.crt")); err == nil {
		pool.AppendCertsFromPEM(data)
	}
	return pool
}

func (s *stage) want(what, status string, change func(*http.Request, *tls.Config)) {
	s.Helper()
	if got := s.ask(change); !strings.Contains(got, status) {
		s.Errorf("%s: %s, want %s", what, got, status)
	}
}

func as(user, password string) func(*http.Request, *tls.Config) {
	return func(r *http.Request, _ *tls.Config) { r.SetBasicAuth(user, password) }
}

func with(certificate, key []byte) func(*http.Request, *tls.Config) {
	return func(_ *http.Request, c *tls.Config) {
		pair, err := tls.X509KeyPair(certificate, key)
		if err == nil { // even if the server does not request it
			c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
		}
	}
}

func TestClientCertificates(t *testing.T) {
	f, a := newFolder(t), newAuthority(t)
	f.server(a, time.Hour)
	s := newStage(f, mutual)
	s.want("one of ours", "200", with(a.issue("prometheus", time.Hour)))
	s.want("none", "handshake failure", nil)
	s.want("one that has expired", "expired", with(a.issue("prometheus", -time.Hour)))
	s.want("somebody else's", "unknown certificate authority", with(newAuthority(t).issue("prometheus", time.Hour)))
}

func TestPasswords(t *testing.T) {
	f := newFolder(t)
	s := newStage(f, users(t, "prometheus", "right"))
	s.want("nobody", "401", nil)
	s.want("the right one", "200", as("prometheus", "right"))
	s.want("a wrong one", "401", as("prometheus", "wrong"))
	s.want("another user's", "401", as("somebody", "right"))
	f.write("web.yml", users(t, "prometheus", "new"))
	s.stale()
	s.want("the old one", "401", as("prometheus", "right"))
	s.want("the new one", "200", as("prometheus", "new"))
}

// Certificates are replaced in place, or by a new link as in Kubernetes.
func TestRenewal(t *testing.T) {
	f, a := newFolder(t), newAuthority(t)
	real := f
	for _, name := range []string{"1", "2"} {
		real.dir = filepath.Join(f.dir, name)
		harness.Check(t, os.Mkdir(real.dir, 0o700))
		real.server(a, time.Hour)
		real.write("web.yml", plainTLS)
	}
	link := filepath.Join(f.dir, "..data")
	swap := func(to string) {
		harness.Check(t, os.Symlink(to, link+".new"))
		harness.Check(t, os.Rename(link+".new", link))
	}
	swap("1")
	f.dir = link
	s := newStage(f, plainTLS)
	serial := func() (n string) {
		s.want("it", "200", func(_ *http.Request, c *tls.Config) {
			c.VerifyConnection = func(state tls.ConnectionState) error {
				n = state.PeerCertificates[0].SerialNumber.String()
				return nil
			}
		})
		return n
	}
	before := serial()
	swap("2")
	s.stale()
	if after := serial(); after == before {
		t.Error("the certificate is still the old one")
	}
	f.write("tls.key", "broken")
	s.stale()
	s.want("a key that does not fit", "internal error", nil)
	harness.Says(t, s.log.String(), "metrics blocked by invalid web configuration")
	swap("1")
	s.stale()
	harness.Equal(t, serial(), before, "the certificate did not come back")
}

// A change that would remove access control, or needs another listener, closes the server.
func TestWhatChangesTooMuchClosesTheDoor(t *testing.T) {
	f, a := newFolder(t), newAuthority(t)
	f.server(a, time.Hour)
	s := newStage(f, plainTLS)
	f.write("web.yml", "")
	s.stale()
	s.want("TLS is taken out", "internal error", nil)

	g := newFolder(t)
	g.server(a, time.Hour)
	p := newStage(g, users(t, "a", "b"))
	for what, text := range map[string]string{"TLS is added": plainTLS, "it is broken": "{", "it is of another": "a: b"} {
		g.write("web.yml", text)
		p.stale()
		p.want(what, "503", as("a", "b"))
	}
	harness.Check(t, os.Remove(filepath.Join(g.dir, "web.yml")))
	p.stale()
	p.want("it is gone", "503", as("a", "b"))
}

// Guessing uses part of one CPU, and a known password does not wait.
func TestGuessing(t *testing.T) {
	s := newStage(newFolder(t), users(t, "prometheus", "right"))
	s.want("the right one", "200", as("prometheus", "right"))
	harness.Until(t, "the rest after it is over", func() bool {
		s.site.turns.mu.Lock()
		defer s.site.turns.mu.Unlock()
		return !s.site.turns.taken
	})
	s.site.turns.taken = true // a check that never ends
	const more = 20
	var crowd sync.WaitGroup
	answers := make(chan string, waitingMax+more)
	for i := range waitingMax + more {
		crowd.Go(func() { answers <- s.ask(as("prometheus", strings.Repeat("x", 1+i%50))) })
	}
	for range more {
		harness.Says(t, <-answers, "429")
	}
	s.want("the right one, meanwhile", "200", as("prometheus", "right"))
	s.want("nobody, meanwhile", "401", nil)
	s.site.turns.Pass()
	crowd.Wait()
	for range waitingMax {
		harness.Says(t, <-answers, "401")
	}
}
