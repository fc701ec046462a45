package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/history"
	"github.com/cniscope/cniscope/pkg/record"
	"github.com/cniscope/cniscope/pkg/settings"
	"github.com/cniscope/cniscope/test/harness"
)

// remembering serves what a node remembers that saw a recording, and returns the options that lead there. Nothing
// was sampled.
func remembering(t *testing.T, recording string) (options string) {
	t.Helper()
	in := harness.Must(record.Open(t.Context(), recording))(t)
	defer in.Close()
	s, _, err := settings.In(in.Header())
	harness.Check(t, err)
	s.Judge.Keep, s.Judge.Ratio = nil, 0
	p := s.Pipeline(in.Header().BootID)
	p.Whole = true
	h := history.New("node-a", time.Unix(0, 0))
	for {
		e, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		harness.Check(t, err)
		p.Each(e, h.Take)
	}
	p.FlushEach(h.Take)
	dir := t.TempDir()
	calls := func() []control.Call { return nil }
	answerAt(t, dir, control.Handlers{ReadHandlers: control.ReadHandlers{Calls: calls, Node: func() control.Node { return control.Node{} }, Operations: h.Operations, Spans: h.Whole}})
	options = filepath.Join(dir, "cniscope.toml")
	harness.Check(t, os.WriteFile(options, fmt.Appendf(nil, "[state]\ndir = %q\n", dir), 0o600))
	return options
}

// answerAt answers in a state folder, as a running cniscope does, until the test or end is over.
func answerAt(t *testing.T, dir string, h control.Handlers) (end func()) {
	t.Helper()
	l := harness.Must(control.Listen(dir))(t)
	return harness.During(t, func(ctx context.Context) { control.Serve(ctx, l, h, slog.New(slog.DiscardHandler)) })
}

// A pod that was slow is drawn, one that was ordinary has a line, and of one that is not there it is said since
// when there is none. Nothing of it was sampled or exported.
func TestWhy(t *testing.T) {
	options := remembering(t, threePods)
	t.Setenv("COLUMNS", "100")
	out, _, err := cniscope(t, "why", "shop/slow-0", "--config", options)
	harness.Check(t, err)
	harness.Says(t, out, "CNI ADD eth0  2.22s  SLOW", "plugin policy ran policyctl, which ran sleep", "→ remove the command sleep from policyctl", "█", "CNI DEL")
	out, _, err = cniscope(t, "why", "web-0", "--config", options)
	if err != nil || !strings.Contains(out, "shop/web-0  CNI ADD eth0  ordinary: ") || strings.Contains(out, "█") {
		t.Errorf("%v:\n%s", err, out)
	}
	_, _, err = cniscope(t, "why", "shop/nobody", "--config", options)
	if err == nil || !strings.Contains(err.Error(), "no CNI call of pod shop/nobody since 1970-01-01 00:00:00Z: the pod may be on another node") || !strings.Contains(err.Error(), "shop/slow-0") {
		t.Error(err)
	}
}

// Documents of what is remembered are as their schemas say.
func TestDocumentsOfWhatIsRemembered(t *testing.T) {
	for _, recording := range []string{threePods, "../../docs/verdicts.rec.gz"} {
		options := remembering(t, recording)
		out, _, err := cniscope(t, "top", "--since", "1000000h", "--format", "json", "--config", options)
		harness.Check(t, err)
		valid(t, schema(t, "top"), recording, []byte(out))
		var top topDocument
		if err := json.Unmarshal([]byte(out), &top); err != nil || top.Problems == 0 || top.Problems > top.Operations {
			t.Fatalf("%v: %s", err, out)
		}
		worst := top.Causes[0].Worst
		out, _, err = cniscope(t, "why", worst.Namespace+"/"+worst.Pod, "--format", "json", "--config", options)
		harness.Check(t, err)
		valid(t, schema(t, "why"), recording, []byte(out))
		if strings.Contains(out, "null") {
			t.Errorf("null in %s", out)
		}
	}
}

// Without a spool, show --last draws what is remembered whole, and says how much else there is.
func TestShowLastWithoutASpool(t *testing.T) {
	options := remembering(t, threePods)
	out, said, err := cniscope(t, "show", "--last", "1000000h", "--config", options)
	if err != nil || !strings.Contains(out, "shop/slow-0") || !strings.Contains(said, "one line each: cniscope why POD") {
		t.Errorf("%v:\n%s\n%s", err, out, said)
	}
	if _, _, err := cniscope(t, "show", "--last", "1000000h", "--pod", "nobody", "--config", options); err == nil {
		t.Error("a pod that is not there is none")
	}
	_, said, err = cniscope(t, "show", "--last", "1s", "--config", options)
	if err != nil || !strings.Contains(said, "was slow or failed in the last 1s") {
		t.Errorf("%v: %s", err, said)
	}
}

// A call that waits for an agent is listed with the agent, and not with the kernel's function.
func TestTheAgentOfACallIsListed(t *testing.T) {
	for want, c := range map[string]control.Call{
		"dhcp at /run/cni/dhcp.sock":     {Waits: "futex_do_wait", Asks: "/run/cni/dhcp.sock", Agent: "dhcp"},
		"an agent at /run/cni/dhcp.sock": {Asks: "/run/cni/dhcp.sock"},
		"/run/store.lock":                {Waits: "do_nanosleep", Asks: "/run/agent.sock", Polls: "/run/store.lock"},
		"do_nanosleep":                   {Waits: "do_nanosleep"},
	} {
		var out strings.Builder
		harness.Check(t, list(&out, []control.Call{c}))
		if !strings.HasSuffix(out.String(), "  "+want+"\n") {
			t.Errorf("want %s:\n%s", want, out.String())
		}
	}
}
