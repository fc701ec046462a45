package metrics

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

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
