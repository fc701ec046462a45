package metrics

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cniscope/cniscope/pkg/peer"
	"github.com/cniscope/cniscope/test/harness"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func serve(t *testing.T, ok bool) *Server {
	t.Helper()
	alive := func() (string, bool) { return "ok", ok }
	ready := func() (string, bool) { return "kernel probe: attached\nnri: off", ok }
	s := harness.Must(Serve(Where{Listen: "127.0.0.1:0"}, newTest(busy).Handler(), Checks{alive, ready},
		slog.New(slog.DiscardHandler)))(t)
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return s
}

func TestServer(t *testing.T) {
	good, bad := serve(t, true), serve(t, false)
	for _, test := range []struct {
		name         string
		server       *Server
		method, path string
		header       string
		status       int
		body         string
	}{
		{"metrics", good, "GET", "/metrics", "", 200, "cniscope_cni_calls_in_flight"},
		{"metrics of a node that is not well are metrics", bad, "GET", "/metrics", "", 200, "cniscope_build_info"},
		{"alive", good, "GET", "/healthz", "", 200, "ok\n"},
		{"stuck", bad, "GET", "/healthz", "", 503, "ok\n"},
		{"ready", good, "GET", "/readyz", "", 200, "kernel probe: attached\nnri: off\n"},
		{"not ready", bad, "GET", "/readyz", "", 503, "nri: off\n"},
		{"nothing is taken", good, "POST", "/metrics", "", 405, ""},
		{"nothing else is there", good, "GET", "/", "", 404, ""},
		{"no profiles", good, "GET", "/debug/pprof/", "", 404, ""},
		{"long headers", good, "GET", "/healthz", strings.Repeat("x", 1<<20), 431, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), test.method, "http://"+test.server.Address()+test.path, nil)
			harness.Check(t, err)
			if test.header != "" {
				r.Header.Set("X-Long", test.header)
			}
			answer, err := http.DefaultClient.Do(r)
			harness.Check(t, err)
			defer answer.Body.Close()
			body, _ := io.ReadAll(answer.Body)
			if answer.StatusCode != test.status || !strings.Contains(string(body), test.body) {
				t.Errorf("status %d, body %.200q", answer.StatusCode, body)
			}
		})
	}
}

func TestAnAddressInUse(t *testing.T) {
	first := serve(t, true)
	_, err := Serve(Where{Listen: first.Address()}, http.NotFoundHandler(), Checks{}, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), first.Address()) || !strings.Contains(err.Error(), "metrics.listen") {
		t.Errorf("error %v: want the address and the remedy", err)
	}
}

func secure(t *testing.T, clients bool) (path string, client *tls.Config) {
	t.Helper()
	dir := t.TempDir()
	authority := harness.Must(harness.NewAuthority())(t)
	pair, err := authority.Issue("scraper", time.Hour)
	text := "tls_server_config:\n  cert_file: tls.crt\n  key_file: tls.key\n"
	if clients {
		text += "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: ca.crt\n"
	}
	harness.Check(t, errors.Join(err, harness.WritePEM(dir, "tls", pair),
		os.WriteFile(filepath.Join(dir, "ca.crt"), authority.PEM(), 0o600),
		os.WriteFile(filepath.Join(dir, "web.yml"), []byte(text), 0o600)))
	return filepath.Join(dir, "web.yml"), &tls.Config{
		RootCAs: authority.Pool(), Certificates: []tls.Certificate{pair},
		MinVersion: tls.VersionTLS12,
	}
}

func fetch(t *testing.T, url string, config *tls.Config) (status int, body string) {
	t.Helper()
	r := harness.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil))(t)
	client := http.Client{Timeout: time.Minute, Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   config,
	}}
	answer, err := client.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text)
}

// Metrics require a certificate, health does not.
func TestMetricsForSomeHealthForAll(t *testing.T) {
	ok := func() (string, bool) { return "ok", true }
	path, mine := secure(t, true)
	for _, address := range []string{"127.0.0.1:0", "[::1]:0", "localhost:0", ":0"} {
		where := Where{Listen: address, Health: address, WebConfig: path, User: peer.UID}
		s, err := Serve(where, newTest(busy).Handler(), Checks{ok, ok}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(address, err)
		}
		reach := func(a string) string { return strings.Replace(a, "[::]", "127.0.0.1", 1) }
		if code, text := fetch(t, "https://"+reach(s.Address())+"/metrics", mine); code != 200 ||
			!strings.Contains(text, "cniscope_build_info") {
			t.Errorf("%s: with a certificate: %d %s", address, code, text)
		}
		// A server of TLS 1.3 refuses after the client's handshake, when the request's write may fail first.
		none := &tls.Config{RootCAs: mine.RootCAs, MaxVersion: tls.VersionTLS12}
		if code, text := fetch(t, "https://"+reach(s.Address())+"/healthz", none); code != 0 ||
			!strings.Contains(text, "handshake failure") {
			t.Errorf("%s: without: %d %s", address, code, text)
		}
		if code, _ := fetch(t, "http://"+reach(s.Address())+"/metrics", nil); code != 400 {
			t.Errorf("%s: in plain text: %d", address, code)
		}
		for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/metrics": 404, "/": 404} {
			if code, text := fetch(t, "http://"+reach(s.Health())+path, nil); code != want {
				t.Errorf("%s%s: %d %s", address, path, code, text)
			}
		}
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// Silent sockets and half handshakes do not block other clients.
func TestIdleSocketsDoNotTakeTLSAway(t *testing.T) {
	path, mine := secure(t, false)
	ok := func() (string, bool) { return "ok", true }
	where := Where{Listen: "127.0.0.1:0", WebConfig: path, User: peer.UID}
	s := harness.Must(listen(where, Checks{ok, ok}.with(newTest(busy).Handler()), slog.New(slog.DiscardHandler)))(t)
	s.http.ReadHeaderTimeout, s.http.ReadTimeout, s.http.WriteTimeout = 0, 0, 0
	go s.serve(slog.New(slog.DiscardHandler))
	t.Cleanup(func() { _ = s.http.Close() })
	for i := range placesMax + 50 {
		c := harness.Must(net.Dial("tcp", s.Address()))(t)
		defer c.Close()
		if i%2 == 0 {
			_, _ = c.Write([]byte{22, 3, 1, 2, 0, 1}) // the start of a ClientHello
		}
	}
	if code, text := fetch(t, "https://"+s.Address()+"/healthz", mine); code != 200 {
		t.Errorf("%d %s", code, text)
	}
}

// An invalid configuration serves nothing.
func TestABrokenWebConfigurationServesNobody(t *testing.T) {
	path := filepath.Join(t.TempDir(), "web.yml")
	for _, where := range []Where{
		{Listen: "127.0.0.1:0", WebConfig: path},
		{Listen: "127.0.0.1:0", Health: "203.0.113.1:1"}, // not a local address
	} {
		s, err := Serve(where, http.NotFoundHandler(), Checks{}, slog.New(slog.DiscardHandler))
		if err == nil {
			t.Errorf("%+v is served at %s", where, s.Address())
		}
	}
}

// Before: crypto/tls buffered what it had of a long message, so 1,000 strangers took more memory than cniscope may.
func TestAHandshakeHasALimitedLength(t *testing.T) {
	path, _ := secure(t, false)
	where := Where{Listen: "127.0.0.1:0", WebConfig: path, User: peer.UID}
	s := harness.Must(listen(where, http.NotFoundHandler(), slog.New(slog.DiscardHandler)))(t)
	s.http.ReadHeaderTimeout, s.http.ReadTimeout, s.http.WriteTimeout = 0, 0, 0
	go s.serve(slog.New(slog.DiscardHandler))
	t.Cleanup(func() { _ = s.http.Close() })
	c := harness.Must(net.Dial("tcp", s.Address()))(t)
	defer c.Close()
	const each = 8 << 10
	hello := []byte{1, 0, 0xff, 0xff} // a ClientHello of 65,535 bytes
	for sent := 0; sent < readMax; sent += each {
		hello = append(hello, make([]byte, each-len(hello))...)
		_, _ = c.Write(append([]byte{22, 3, 1, each >> 8, each & 0xff}, hello...))
		hello = nil
	}
	if _, err := io.ReadAll(c); err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Error(err)
	}
}
