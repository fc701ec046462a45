package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/fleet"
	"github.com/cniscope/cniscope/pkg/history"
	"github.com/cniscope/cniscope/test/harness"
)

func asked(t *testing.T) (control.Reader, *history.History) {
	t.Helper()
	h := history.New("node-1", time.Now())
	for _, namespace := range []string{"shop", "bank"} {
		h.Add(control.Line{
			Namespace: namespace, Pod: "web", PodUID: "u-" +
				namespace, Command: "ADD", Result: control.Slow, Verdict: "verdict of " + namespace, Certain: true,
			TraceID: map[string]string{
				"shop": strings.Repeat("a", 32),
				"bank": strings.Repeat("b", 32),
			}[namespace], Time: time.Now(),
		})
	}
	folder := filepath.Join(t.TempDir(), "read")
	l := harness.Must(control.ListenRead(folder, os.Getgid()))(t)
	harness.During(t, func(ctx context.Context) {
		control.ServeRead(ctx, l, control.ReadHandlers{
			Node: func() control.Node { return control.Node{Version: "v9"} },
			Calls: func() []control.Call {
				return []control.Call{
					{Namespace: "shop", Pod: "web"},
					{Namespace: "shop", Pod: "db"},
					{Namespace: "bank", Pod: "web"},
				}
			},
			Operations: h.Operations,
			Spans: func(trace string) ([]byte, error) {
				shop := &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: "shop"}}
				return proto.Marshal(&tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{{
					Resource: &resourcepb.Resource{Attributes: []*commonpb.KeyValue{{Key: "k8s.namespace.name", Value: shop}}},
					ScopeSpans: []*tracepb.ScopeSpans{{Spans: []*tracepb.Span{{
						TraceId: []byte(trace)[:16],
						SpanId:  []byte("01234567"), Name: "CNI ADD",
					}}}},
				}}})
			},
			Doctor: func(context.Context) ([]byte, error) { return []byte(`{"findings":[]}`), nil },
			Record: func(_ context.Context, w http.ResponseWriter, _ func()) error {
				_, err := io.WriteString(w, "a recording")
				return err
			},
		}, slog.New(slog.DiscardHandler))
	})
	return control.Reader{Path: filepath.Join(folder, control.ReadSocket)}, h
}

func TestEachQuestionIsAnswered(t *testing.T) {
	node, _ := asked(t)
	trace := strings.Repeat("b", 32)
	for name, c := range map[string]struct {
		q    question
		says string
		not  string
		code int
	}{
		"calls":                {question{what: fleet.Calls}, "bank", "nobody", 0},
		"calls of one pod":     {question{what: fleet.Calls, pod: "web"}, `"pod":"web"`, `"pod":"db"`, 0},
		"calls of a namespace": {question{what: fleet.Calls, namespace: "bank"}, "bank", "shop", 0},
		"operations": {
			question{what: fleet.Operations, problems: true, since: time.Hour},
			"verdict of bank",
			"nobody", 0,
		},
		"of a namespace": {question{what: fleet.Operations, namespace: "shop"}, "verdict of shop", "bank", 0},
		"spans":          {question{what: fleet.Spans, trace: trace}, "CNI ADD", "nobody", 0},
		"spans, encoded": {question{what: fleet.Spans, trace: trace, format: fleet.Protobuf}, "\aCNI ADD", "{", 0},
		"the node":       {question{what: fleet.Node}, "v9", "nobody", 0},
		"doctor":         {question{what: fleet.Doctor}, "findings", "nobody", 0},
		"a recording": {
			question{what: fleet.Record, namespace: "shop", pod: "web", recording: time.Second},
			"a recording", "nobody", 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := c.q.answer(t.Context(), node, &out)
			if err == nil && c.code != 0 || err != nil && exitCode(err) != c.code {
				t.Errorf("it ended with %v, want code %d", err, c.code)
			}
			if !strings.Contains(out.String(), c.says) || strings.Contains(out.String(), c.not) {
				t.Errorf("the answer is %s", out.String())
			}
			if c.code == 0 && c.q.what != fleet.Record && c.q.format != fleet.Protobuf && !json.Valid(out.Bytes()) {
				t.Errorf("the answer is no JSON: %s", out.String())
			}
		})
	}
}

func TestANodeWithoutCniscope(t *testing.T) {
	err := question{what: fleet.Calls}.answer(t.Context(), control.Reader{Path: filepath.Join(t.TempDir(), "none")},
		io.Discard)
	if !errors.Is(err, control.ErrNotRunning) || exitCode(err) != fleet.NoAnswer {
		t.Errorf("%v", err)
	}
}

// A follower gets each recent operation once, and continues after an outage.
func TestEachProblemIsFollowedOnce(t *testing.T) {
	node, h := asked(t)
	batches := make(chan batch)
	f := &follower{node: node, log: slog.New(slog.DiscardHandler)}
	harness.During(t, func(ctx context.Context) { f.follow(ctx, batches) })
	var pods []string
	take := func(n int) {
		t.Helper()
		for len(pods) < n {
			for _, l := range (<-batches).lines {
				pods = append(pods, l.Namespace+"/"+l.Pod)
			}
		}
	}
	take(2)
	h.Add(control.Line{Namespace: "shop", Pod: "ordinary", Command: "ADD", Result: control.Ordinary, Time: time.Now()})
	h.Add(control.Line{Namespace: "shop", Pod: "late", Command: "ADD", Result: control.Failed, Time: time.Now()})
	take(3)
	harness.Equal(t, strings.Join(pods, " "), "shop/web bank/web shop/late", "it followed")
}

// Each row is a command line with its exit code and its error.
func TestCommandLines(t *testing.T) {
	for args, c := range map[string]struct {
		code int
		says string
	}{
		"nope":              {2, `unknown command "nope"` + "\nTry 'cniscope-reader --help'"},
		"":                  {2, "cniscope-reader needs a command"},
		"ask nope":          {2, "ask: want one of calls, "},
		"ask calls --nope":  {2, "unknown flag: --nope"},
		"ask calls --since": {2, "flag needs an argument: --since"},
		"serve nope":        {2, `serve takes no arguments, got "nope"`},
	} {
		cmd := rootCmd()
		cmd.SetArgs(strings.Fields(args))
		err := cmd.ExecuteContext(t.Context())
		harness.Equal(t, exitCode(err), c.code, args)
		harness.Says(t, fmt.Sprint(err), c.says)
	}
}
