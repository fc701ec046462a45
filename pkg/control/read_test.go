// The read-only socket is not on Windows; pipe_windows_test.go covers the shared code.
//go:build !windows

package control

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
)

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
