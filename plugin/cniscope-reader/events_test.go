package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
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
