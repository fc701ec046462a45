package main

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/cniscope/cniscope/pkg/fleet/events"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/harness/spelled"
)

// An API server may repeat a token in any spelling.
func TestNoTokenLeavesThroughTheAPIServer(t *testing.T) {
	const own = "eyJhbGciOiJSUzI1NiIsImtpZCI6Ijk5"
	for way, spell := range spelled.Ways() {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			said := strings.NewReplacer("\\", "\\\\", "\"", "\\\"").Replace("invalid bearer [" + spell(own) + "]")
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w,
				`{"kind":"Status","apiVersion":"v1","status":"Failure","code":403,"reason":"Forbidden","message":"`+said+`"}`)
		}))
		config := func() *rest.Config {
			return &rest.Config{
				Host: s.URL, BearerToken: own,
				ContentConfig: rest.ContentConfig{ContentType: "application/json"},
			}
		}
		api := harness.Must(eventsOf(config()))(t)
		log := &strings.Builder{}
		w := &writer{api: api, as: config(), log: slog.New(slog.NewTextHandler(log, nil))}
		write := &events.Write{Create: true}
		write.Namespace, write.Pod, write.Name = "shop", "web-0", "web-0.1"
		w.outcome(write, w.write(t.Context(), write))
		if !strings.Contains(log.String(), "invalid bearer") {
			t.Errorf("%s: the cause is missing in %s", way, log)
		}
		if window, is := spelled.Seen(log.String(), way, own); is {
			t.Errorf("%s: %q leaves: %s", way, window, log)
		}
		s.Close()
	}
}
