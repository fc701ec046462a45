package main

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/cniscope/cniscope/pkg/fleet/access"
	"github.com/cniscope/cniscope/pkg/fleet/events"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/harness/spelled"
)

// An API server may repeat a token in any spelling.
func TestNoTokenLeavesThroughTheAPIServer(t *testing.T) {
	const own, asked = "eyJhbGciOiJSUzI1NiIsImtpZCI6Ijk5", "Xq7CanaryTokenZ9t4421Review"
	for way, spell := range spelled.Ways() {
		refuse := true
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			said := strings.NewReplacer("\\", "\\\\", "\"", "\\\"").Replace("invalid bearer [" + spell(own) + "] [" + spell(asked) + "]")
			w.Header().Set("Content-Type", "application/json")
			if refuse {
				w.WriteHeader(http.StatusForbidden)
				_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":403,"reason":"Forbidden","message":"`+said+`"}`)
				return
			}
			_, _ = io.WriteString(w, `{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","status":{"error":"`+said+`"}}`)
		}))
		config := func() *rest.Config {
			return &rest.Config{Host: s.URL, BearerToken: own, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
		}
		clean := func(what, text string, secrets ...string) {
			t.Helper()
			if !strings.Contains(text, "invalid bearer") {
				t.Errorf("%s: the cause is missing in %s: %s", way, what, text)
			}
			for _, secret := range secrets {
				if window, is := spelled.Seen(text, way, secret); is {
					t.Errorf("%s: %q leaves in %s: %s", way, window, what, text)
				}
			}
		}

		_, err := reviewAs(t.Context(), config(), asked)
		if err == nil {
			t.Fatal("it is not refused")
		}
		clean("an error", err.Error(), own, asked)
		refuse = false
		id, err := reviewAs(t.Context(), config(), asked)
		harness.Check(t, err)
		_, err = access.Of(id, "")
		clean("an answer", err.Error(), own, asked)

		refuse = true
		api, err := eventsOf(config())
		harness.Check(t, err)
		log := &strings.Builder{}
		w := &writer{api: api, as: config(), log: slog.New(slog.NewTextHandler(log, nil))}
		write := &events.Write{Create: true}
		write.Namespace, write.Pod, write.Name = "shop", "web-0", "web-0.1"
		w.outcome(write, w.write(t.Context(), write))
		clean("the log", log.String(), own)
		s.Close()
	}
}
