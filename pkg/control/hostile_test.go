// The read-only socket is not on Windows; pipe_windows_test.go covers the shared code.
//go:build !windows

package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
)

// serveBounded serves readers with low bounds.
func serveBounded(t *testing.T, h ReadHandlers) (Reader, bounds) {
	t.Helper()
	b := readBounds()
	b.connections, b.answer, b.idle, b.patience = 12, 200*time.Millisecond, 200*time.Millisecond, 200*time.Millisecond
	dir := t.TempDir()
	l := harness.Must(ListenRead(dir, os.Getegid()))(t)
	s := &reads{ReadHandlers: h, bounds: b, log: slog.New(slog.DiscardHandler)}
	harness.During(t, func(ctx context.Context) { s.serve(ctx, l) })
	return Reader{Path: filepath.Join(dir, ReadSocket)}, b
}

// manyLines exceeds a socket's buffer.
func manyLines() iter.Seq[Line] {
	return slices.Values(slices.Repeat([]Line{{Command: "ADD", Verdict: strings.Repeat("x", 400)}}, 10_000))
}

func dial(t *testing.T, r Reader) net.Conn {
	t.Helper()
	c := harness.Must(net.Dial("unix", r.Path))(t)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// An ordinary reader is answered after silent, malformed, non-reading and excessive ones.
func TestHostileReaders(t *testing.T) {
	harness.Slow(t)
	r, b := serveBounded(t, ReadHandlers{
		Node:       func() Node { return Node{Version: "v1"} },
		Operations: func(context.Context, Query) Found { return Found{Lines: manyLines()} },
	})
	for name, attack := range map[string]func(c net.Conn){
		"silent":        func(net.Conn) {},
		"half a header": func(c net.Conn) { _, _ = io.WriteString(c, "GET /v1/node HT") },
		"garbage":       func(c net.Conn) { _, _ = c.Write(slices.Repeat([]byte{0xff, 0, '\n'}, 5000)) },
		"long headers": func(c net.Conn) {
			_, _ = io.WriteString(c, "GET /v1/node HTTP/1.1\r\nX: "+strings.Repeat("x", 1<<20))
		},
		"does not read": func(c net.Conn) { _, _ = io.WriteString(c, "GET /v1/operations HTTP/1.1\r\nHost: x\r\n\r\n") },
		"gone at once": func(c net.Conn) {
			_, _ = io.WriteString(c, "GET /v1/operations HTTP/1.1\r\nHost: x\r\n\r\n")
			_ = c.Close()
		},
	} {
		for range 3 * b.connections {
			c := dial(t, r)
			_ = c.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
			attack(c)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		for {
			n, err := r.Node(ctx)
			if err == nil && n.Version == "v1" {
				break
			}
			if !errors.Is(err, ErrBusy) {
				t.Fatalf("%s: %v", name, err)
			}
		}
		cancel()
	}
}

func TestWrongQuestions(t *testing.T) {
	r, _ := serveBounded(t, ReadHandlers{Operations: func(context.Context, Query) Found { return Found{} }})
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", r.Path)
	}
	client := http.Client{Transport: &http.Transport{DialContext: dial}}
	defer client.CloseIdleConnections()
	for question, want := range map[string]int{
		"POST /v1/operations": 405, "DELETE /v1/node": 405, "PUT /v1/record?for=1s": 405,
		"GET /record": 404, "GET /calls": 404, "GET /recent": 404, "GET /v1/": 404, "GET /": 404,
		"GET /v1/operations?after=-1": 400, "GET /v1/operations?limit=x": 400, "GET /v1/operations?wait=NaN": 400,
		"GET /v1/operations?since=yesterday": 400, "GET /v1/operations?problems=perhaps": 400,
		"GET /v1/record": 400, "GET /v1/record?for=-1s": 400,
		"GET /v1/operations?since=1h&wait=0": 200, "GET /v1/operations?since=2026-01-02T03:04:05.6Z": 200,
	} {
		method, path, _ := strings.Cut(question, " ")
		request := harness.Must(http.NewRequestWithContext(t.Context(), method, "http://x"+path, nil))(t)
		answer, err := client.Do(request)
		harness.Check(t, err)
		said, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		harness.Equal(t, answer.StatusCode, want, question, answer.Status, said)
	}
}

// Waiting polls are bounded and do not block other requests.
func TestPollsAreBounded(t *testing.T) {
	r, b := serveBounded(t, ReadHandlers{
		Node: func() Node { return Node{} },
		Operations: func(ctx context.Context, _ Query) Found {
			<-ctx.Done()
			return Found{}
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	polls := cap(b.polls.free)
	for range polls + 1 {
		go func() {
			_, err := r.Operations(ctx, Query{Wait: MaxWait})
			failed <- err
		}()
	}
	if err := <-failed; !errors.Is(err, ErrBusy) {
		t.Error(err)
	}
	if _, err := r.Node(ctx); err != nil {
		t.Error(err)
	}
	cancel()
	for range polls {
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

// An answer with all lines is streamed.
func TestALongAnswerTakesLittleMemory(t *testing.T) {
	many := func(context.Context, Query) Found { return Found{Lines: manyLines()} }
	h := (&reads{ReadHandlers{Operations: many}, rootBounds(), slog.New(slog.DiscardHandler)}).handler()
	request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/operations", nil)
	out := &discard{header: http.Header{}, most: new(uint64)}
	h.ServeHTTP(out, request)
	if out.n < 4<<20 || *out.most > 8<<20 {
		t.Errorf("%d bytes, and %d of heap at the most", out.n, *out.most)
	}
}

type discard struct {
	header    http.Header
	n, writes int
	most      *uint64
}

func (d *discard) Header() http.Header { return d.header }
func (d *discard) WriteHeader(int)     {}

func (d *discard) Write(b []byte) (int, error) {
	if d.writes++; d.writes%100 == 0 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		*d.most = max(*d.most, m.HeapAlloc)
	}
	d.n += len(b)
	return len(b), nil
}

// Requests during an examination or shortly after get the same document.
func TestTheNodeIsExaminedOnceForAll(t *testing.T) {
	begun, goOn := make(chan struct{}, 10), make(chan struct{})
	examine := Examined(func(context.Context) ([]byte, error) {
		begun <- struct{}{}
		<-goOn
		return []byte("found"), nil
	})
	answers := make(chan string)
	for range 5 {
		go func() {
			found, err := examine(t.Context())
			answers <- fmt.Sprint(string(found), err)
		}()
	}
	<-begun
	close(goOn)
	for range 5 {
		harness.Equal(t, <-answers, "found<nil>")
	}
	if len(begun) > 0 {
		t.Error("it was examined more than once")
	}
}

// An examination survives its client, and its document serves the next one.
func TestAnExaminationIsNotLeftHalfDone(t *testing.T) {
	begun, goOn := make(chan struct{}, 10), make(chan struct{})
	examine := Examined(func(ctx context.Context) ([]byte, error) {
		begun <- struct{}{}
		<-goOn
		return []byte("found"), ctx.Err()
	})
	asker, gone := context.WithCancel(t.Context())
	answered := make(chan error)
	go func() {
		_, err := examine(asker)
		answered <- err
	}()
	<-begun
	gone()
	if err := <-answered; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := examine(impatient); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(goOn)
	if found, err := examine(t.Context()); string(found) != "found" || err != nil {
		t.Errorf("%s, %v", found, err)
	}
	if len(begun) > 0 {
		t.Error("it was examined more than once")
	}
}

func serveRead(t *testing.T, h ReadHandlers) Reader {
	t.Helper()
	dir := t.TempDir()
	l := harness.Must(ListenRead(dir, os.Getegid()))(t)
	harness.During(t, func(ctx context.Context) { ServeRead(ctx, l, h, slog.New(slog.DiscardHandler)) })
	return Reader{Path: filepath.Join(dir, ReadSocket)}
}

// Requests and answers arrive unchanged.
func TestQuestionsAndAnswers(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	line := Line{
		Seq: 7, Time: now, Namespace: "shop", Pod: "web-0", Command: "ADD", Duration: time.Second, Result: Slow,
		Cause: "file_lock",
	}
	var asked Query
	r := serveRead(t, ReadHandlers{
		Node:  func() Node { return Node{Version: "v1"} },
		Calls: func() []Call { return nil },
		Operations: func(_ context.Context, q Query) Found {
			asked = q
			return Found{Lines: slices.Values([]Line{line, line}), Next: 7, Since: now, Of: 9}
		},
		Spans: func(trace string) ([]byte, error) {
			if trace != "0a" {
				return nil, ErrNotRemembered
			}
			return []byte("\n\x00"), nil
		},
		Doctor:    func(context.Context) ([]byte, error) { return []byte(`{"schema":"x"}`), nil },
		APIServer: func() (string, error) { return "", errors.New("no kubelet runs here") },
		Record: func(_ context.Context, w http.ResponseWriter, _ func()) error {
			_, err := io.WriteString(w, "events")
			return err
		},
	})
	ctx := t.Context()
	if _, err := r.APIServer(ctx); err == nil || !strings.Contains(err.Error(), "no kubelet runs here") {
		t.Errorf("why there is no answer is lost: %v", err)
	}
	if n, err := r.Node(ctx); err != nil || n.Version != "v1" {
		t.Errorf("%+v, %v", n, err)
	}
	if c, err := r.Calls(ctx); err != nil || c == nil || len(c) != 0 {
		t.Errorf("%+v, %v", c, err)
	}
	q := Query{
		Namespace: "shop", Pod: "a b&c", Problems: true, Since: now, After: 3, Limit: 5,
		Wait: 1500 * time.Millisecond,
	}
	found, err := r.Operations(ctx, q)
	if err != nil || asked != q || !reflect.DeepEqual(found.Operations, []Line{line, line}) || found.Next != 7 ||
		found.Of != 9 || !found.Since.Equal(now) {
		t.Errorf("%+v, %v; asked %+v", found, err, asked)
	}
	if s, err := r.Spans(ctx, "0a"); err != nil || string(s) != "\n\x00" {
		t.Errorf("%q, %v", s, err)
	}
	if _, err := r.Spans(ctx, "../node"); !errors.Is(err, ErrNotRemembered) {
		t.Error(err)
	}
	if d, err := r.Doctor(ctx); err != nil || string(d) != `{"schema":"x"}` {
		t.Errorf("%s, %v", d, err)
	}
	body := harness.Must(r.Record(ctx, time.Second))(t)
	defer body.Close()
	if all, err := io.ReadAll(body); err != nil || string(all) != "events" {
		t.Errorf("%s, %v", all, err)
	}
}

func TestOnlyRootMayAsk(t *testing.T) {
	c := serving(t, Handlers{})
	info, err := os.Stat(filepath.Join(c.Dir, Socket))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket: %v, %v", info, err)
	}
}

func TestASocketLeftBehindIsTakenAway(t *testing.T) {
	dir := t.TempDir()
	first := harness.Must(Listen(dir))(t)
	defer first.Close()
	second, err := Listen(dir)
	if err != nil {
		t.Fatalf("after a crash: %v", err)
	}
	_ = second.Close()
}

func firstClient(*testing.T, string) {}
