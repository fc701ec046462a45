package main

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/events/v1"
	"k8s.io/client-go/rest"

	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/fleet/events"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/harness/spelled"
)

// server is an API server for Events without a network, so that time can be faked.
type server struct {
	mu     sync.Mutex
	status int
	asked  int
	events map[string]*v1.Event
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	s.answer(w, r)
	return w.Result(), nil
}

func (s *server) answer(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	w.Header().Set("Content-Type", "application/json")
	if s.status != 0 {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(s.status)
		_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q}`, s.status,
			map[int]string{403: "Forbidden", 404: "NotFound", 503: "ServiceUnavailable"}[s.status])
		return
	}
	body, _ := io.ReadAll(r.Body)
	e := &v1.Event{}
	if r.Method == http.MethodPatch {
		e = s.events[r.URL.Path]
	}
	if err := json.Unmarshal(body, e); err != nil {
		panic(err)
	}
	path := r.URL.Path
	if r.Method == http.MethodPost {
		path += "/" + e.Name
	}
	s.events[path] = e
	_ = json.NewEncoder(w).Encode(e)
}

func (s *server) fail(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

// telling runs a writer against a server; the returned function ends it.
func telling(t *testing.T, s *server) (to chan batch, log *strings.Builder, end func()) {
	t.Helper()
	s.events = map[string]*v1.Event{}
	api := harness.Must(eventsOf(&rest.Config{
		Host: "http://api.example", Transport: s, QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: "application/json"},
	}))(t)
	log = &strings.Builder{}
	w := &writer{api: api, as: &rest.Config{}, node: "node-1", log: slog.New(slog.NewTextHandler(log, nil))}
	to = make(chan batch)
	return to, log, harness.During(t, func(ctx context.Context) { _ = w.tell(ctx, events.NewLedger(), to) })
}

func slow(pod int) control.Line {
	return control.Line{
		Time: time.Now(), Namespace: "shop", Pod: fmt.Sprint("web-", pod), PodUID: fmt.Sprint("u-",
			pod), Command: "ADD", IfName: "eth0",
		Duration: 5 * time.Second, Result: control.Slow, Cause: "sleep", Verdict: "4.9s of 5s: plugin policy ran policyctl", Certain: true,
	}
}

func TestAnEventIsWhatTheAPIWants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		to, _, end := telling(t, s)
		line := slow(0)
		to <- batch{lines: []control.Line{line, line, {Result: control.Ordinary}}}
		synctest.Wait()
		to <- batch{lines: []control.Line{line}}
		time.Sleep(3 * time.Minute)
		end()
		if len(s.events) != 1 {
			t.Fatalf("%d Events", len(s.events))
		}
		for path, e := range s.events {
			if !strings.HasPrefix(path, "/apis/events.k8s.io/v1/namespaces/shop/events/web-0.") {
				t.Errorf("it is written to %s", path)
			}
			if e.Regarding.Kind != "Pod" || e.Regarding.Name != "web-0" || e.Regarding.Namespace != "shop" ||
				e.Regarding.UID != "u-0" {
				t.Errorf("it is of %+v", e.Regarding)
			}
			if e.Reason != "CNISlow" || e.Type != "Normal" || e.Note != "CNI ADD eth0 took 5s: 4.9s: plugin policy ran policyctl" ||
				e.Action != "ADD" ||
				e.ReportingController != controller || e.ReportingInstance != "node-1" || e.EventTime.IsZero() {
				t.Errorf("it is %+v", e)
			}
			if e.Series == nil || e.Series.Count != 3 || e.Series.LastObservedTime.IsZero() {
				t.Errorf("its series is %+v", e.Series)
			}
		}
	})
}

// During an hour's outage the API server is contacted rarely, and Events resume afterwards.
func TestAnOutageOfTheAPIServer(t *testing.T) {
	for status, says := range map[int]string{
		http.StatusServiceUnavailable: "rejects Events, retrying",
		http.StatusForbidden:          "let a ClusterRole",
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &server{status: status}
			to, log, end := telling(t, s)
			for i := range 3600 {
				to <- batch{lines: []control.Line{slow(i)}}
				time.Sleep(time.Second)
			}
			asked := s.asked
			s.fail(0)
			time.Sleep(10 * time.Minute)
			end()
			if asked > 80 || strings.Count(log.String(), says) != 1 {
				t.Errorf("%d attempts in an hour; it says\n%s", asked, log)
			}
			if len(s.events) == 0 || !strings.Contains(log.String(), "accepts Events again") || !strings.Contains(log.String(),
				"Events dropped by limit") {
				t.Errorf("%d Events afterwards; it says\n%s", len(s.events), log)
			}
		})
	}
}

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

// Without a service network Events are written to the address that the kubelet uses, for a certificate of the service.
func TestTheAPIServerOfTheKubelet(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	away := harness.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	service := away.Addr().String()
	away.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for name, tt := range map[string]struct {
		host    string
		kubelet func(context.Context) (string, error)
		says    string
	}{
		"the service is away": {
			service,
			func(context.Context) (string, error) { return server.Listener.Addr().String(), nil }, "",
		},
		"the service answers": {
			server.Listener.Addr().String(),
			func(context.Context) (string, error) { return service, nil }, "",
		},
		"nothing else is known": {server.Listener.Addr().String(), func(context.Context) (string, error) {
			return "", errors.New("no kubelet")
		}, ""},
		"both are away": {
			service, func(context.Context) (string, error) { return "127.0.0.1:1", nil },
			"127.0.0.1:1",
		},
		"away, and nothing is known": {service, func(context.Context) (string, error) {
			return "", errors.New("no kubelet")
		}, "no kubelet"},
		"a certificate of other name": {
			"other.invalid:443",
			func(context.Context) (string, error) { return server.Listener.Addr().String(), nil }, "certificate",
		},
	} {
		config := &rest.Config{
			Host: "https://" + tt.host, TLSClientConfig: rest.TLSClientConfig{CAData: ca},
			Dial: dialer(tt.kubelet),
		}
		client := harness.Must(rest.HTTPClientFor(config))(t)
		answer, err := client.Get(config.Host)
		if err == nil {
			answer.Body.Close()
		}
		switch {
		case tt.says == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)):
			t.Errorf("%s: %v", name, err)
		}
	}
}
