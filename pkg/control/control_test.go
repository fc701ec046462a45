package control

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
)

func serving(t *testing.T, h Handlers) Client {
	t.Helper()
	c, _ := served(t, h)
	return c
}

func served(t *testing.T, h Handlers) (c Client, end func()) {
	t.Helper()
	dir := t.TempDir()
	l := harness.Must(Listen(dir))(t)
	end = harness.During(t, func(ctx context.Context) { Serve(ctx, l, h, slog.New(slog.DiscardHandler)) })
	firstClient(t, dir)
	return Client{Dir: dir}, end
}

func TestCallsAndTheNodeArePassedOn(t *testing.T) {
	call := Call{
		Namespace: "shop", Pod: "web-0", Command: "ADD", Plugin: "bridge", Age: time.Minute, Runs: "iptables",
		PID: 1,
	}
	node := Node{
		Version: "v1.2.3", PID: 7, Parent: 1, Probe: "attached", NRI: "registered",
		Trusted: []string{"containerd (pid 8)"},
	}
	c := serving(t, Handlers{ReadHandlers: ReadHandlers{
		Calls: func() []Call { return []Call{call} }, Node: func() Node { return node },
	}})
	calls := harness.Must(c.Calls(t.Context()))(t)
	harness.EqualSlices(t, calls, []Call{call})
	told := harness.Must(c.Node(t.Context()))(t)
	harness.DeepEqual(t, told, node)
}

func TestTheRemedyOfAHangingStep(t *testing.T) {
	harness.Equal(t, Call{PID: 7, State: "T"}.Remedy(), "run kill -CONT 7")
	harness.Equal(t, Call{PID: 7, State: "t"}.Remedy(), "detach the debugger, whose process ID is TracerPid in /proc/7/status")
	harness.Equal(t, Call{PID: 7, State: "D"}.Remedy(),
		"run cat /proc/7/stack, and fix the mount, disk or program that process 7 waits for")
}

func TestATableNamesTheAgentThatIsAsked(t *testing.T) {
	c := Call{Namespace: "shop", Pod: "web-0", Command: "ADD", PID: 7, State: "S", Waits: "do_poll", Asks: "/run/a.sock"}
	c.Plugin, c.Runs, c.IfName, c.Age, c.Running = "p", "p", "eth0", time.Minute, time.Second
	harness.Equal(t, Table([]Call{c}, []string{"n1"}), `
NODE  POD         CALL      PLUGIN  AGE   RUNS  PID  FOR  STATE  WAITS IN
n1    shop/web-0  ADD eth0  p       1m0s  p     7    1s   S      an agent at /run/a.sock
`[1:])
}

func TestARecordingIsAStream(t *testing.T) {
	ended := make(chan struct{})
	c := serving(t, Handlers{ReadHandlers: ReadHandlers{Record: func(ctx context.Context, w http.ResponseWriter, flush func()) error {
		defer close(ended)
		_, _ = io.WriteString(w, "first\n")
		flush()
		<-ctx.Done()
		return ctx.Err()
	}}})
	ctx, cancel := context.WithCancel(t.Context())
	body := harness.Must(c.Record(ctx))(t)
	line := make([]byte, 6)
	if _, err := io.ReadFull(body, line); err != nil || string(line) != "first\n" {
		t.Errorf("%q, %v", line, err)
	}
	cancel()
	<-ended // the server notices that the reader left
}

// A recording contains all events up to the end of the server.
func TestARecordingEndsWholeWithTheServer(t *testing.T) {
	c, end := served(t, Handlers{ReadHandlers: ReadHandlers{Record: func(ctx context.Context, w http.ResponseWriter, flush func()) error {
		_, _ = io.WriteString(w, "first\n")
		flush()
		<-ctx.Done()
		_, _ = io.WriteString(w, "last\n")
		return nil
	}}})
	body := harness.Must(c.Record(t.Context()))(t)
	defer body.Close()
	line := make([]byte, 6)
	if _, err := io.ReadFull(body, line); err != nil {
		t.Fatal(err)
	}
	go end()
	if rest, err := io.ReadAll(body); err != nil || string(rest) != "last\n" {
		t.Errorf("%q, %v", rest, err)
	}
}

func TestNobodyAnswers(t *testing.T) {
	if _, err := (Client{Dir: t.TempDir()}).Calls(t.Context()); !errors.Is(err, ErrNotRunning) {
		t.Error(err)
	}
}

// CNI's commands are in upper case, requests to the runtime are not.
func TestTheCallOfALine(t *testing.T) {
	for command, want := range map[string]string{"ADD": "CNI ADD eth0", "StopPodSandbox": "StopPodSandbox", "StopContainer": "StopContainer"} {
		if got := (Line{Command: command, IfName: "eth0"}).Call(); got != want {
			t.Errorf("%s: %s", command, got)
		}
	}
}
