// Package control answers root and administrators over HTTP on a unix socket or named pipe, and a group read-only on
// a second socket.
package control

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/cniscope/cniscope/pkg/baseline"
	"github.com/cniscope/cniscope/pkg/leak"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/pkg/serve"
	"github.com/cniscope/cniscope/pkg/text"
)

// Call is a CNI call in progress.
type Call struct {
	Namespace   string `json:"namespace,omitempty"`
	Pod         string `json:"pod,omitempty"`
	ContainerID string `json:"sandbox,omitempty"`
	Command     string `json:"command"`
	IfName      string `json:"ifname,omitempty"`
	Plugin      string `json:"plugin"`
	// Age is the duration so far. Runs is the innermost command.
	Age     time.Duration `json:"age_ns"`
	Runs    string        `json:"runs"`
	PID     uint32        `json:"pid"`
	Running time.Duration `json:"running_ns"`
	// State is as in ps(1), Waits the kernel function.
	State string `json:"state,omitempty"`
	Waits string `json:"waits,omitempty"`
	// Asks is the open connection's address, Agent its process, Asking its duration.
	Asks   string        `json:"asks,omitempty"`
	Agent  string        `json:"agent,omitempty"`
	Asking time.Duration `json:"asking_ns,omitempty"`
	// Polls is the path that the plugin polls for; empty without one.
	Polls string `json:"polls,omitempty"`
	// Verdict of a hung runtime request.
	Verdict string `json:"verdict,omitempty"`
}

// Remedy is that of Verdict.
func (c Call) Remedy() string {
	switch c.State {
	case "T":
		return fmt.Sprintf("run kill -CONT %d", c.PID)
	case "t":
		return fmt.Sprintf("detach the debugger, whose process ID is TracerPid in /proc/%d/status", c.PID)
	}
	return fmt.Sprintf("run cat /proc/%d/stack, and fix the mount, disk or program that process %[1]d waits for", c.PID)
}

// Table puts nodes before calls.
func Table(calls []Call, nodes []string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	if nodes != nil {
		fmt.Fprint(w, "NODE\t")
	}
	fmt.Fprintln(w, "POD\tCALL\tPLUGIN\tAGE\tRUNS\tPID\tFOR\tSTATE\tWAITS IN")
	for i, c := range calls {
		if nodes != nil {
			fmt.Fprint(w, nodes[i]+"\t")
		}
		waits := cmp.Or(c.Polls, c.Waits)
		if c.Asks != "" && c.Polls == "" {
			waits = cmp.Or(c.Agent, "an agent") + " at " + c.Asks
		}
		fmt.Fprintf(w, "%s/%s\t%s %s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n", c.Namespace, c.Pod, c.Command, c.IfName, c.Plugin,
			text.Round(c.Age), c.Runs, c.PID, text.Round(c.Running), c.State, waits)
	}
	_ = w.Flush() // into b
	for _, c := range calls {
		if c.Verdict != "" {
			fmt.Fprintf(&b, "%s: %s\n", c.OfPod(), c.Verdict)
		}
	}
	return b.String()
}

// OfPod adds a known pod to Command.
func (c Call) OfPod() string {
	if c.Pod == "" {
		return c.Command
	}
	return fmt.Sprintf("%s of pod %s/%s", c.Command, c.Namespace, c.Pod)
}

// Recent holds facts about finished calls.
type Recent struct {
	Agents   []Agent   `json:"agents"`
	Failures []Failure `json:"failures"`
	// Worked is the last success, by Failure.Key.
	Worked map[string]time.Time `json:"worked,omitempty"`
	Held   []leak.Attachment    `json:"held,omitempty"`
}

// Agent is a daemon that a network's plugins connected to.
type Agent struct {
	Network string `json:"network"`
	Plugin  string `json:"plugin"`
	Kind    string `json:"kind"`    // "unix" or "tcp"
	Address string `json:"address"` // path, or address:port
	// Name and PID are of the latest process to answer, or the socket's maker.
	Name string `json:"name,omitempty"`
	PID  uint32 `json:"pid,omitempty"`
	// Answered and Failed are the last such calls; Failures counts since a success.
	Answered time.Time `json:"answered,omitzero"`
	Failed   time.Time `json:"failed,omitzero"`
	Error    string    `json:"error,omitempty"`
	Failures int       `json:"failures,omitempty"`
}

// Failure is a failed call.
type Failure struct {
	Time      time.Time     `json:"time"`
	Took      time.Duration `json:"took_ns"`
	Namespace string        `json:"namespace,omitempty"`
	Pod       string        `json:"pod,omitempty"`
	Command   string        `json:"command"`
	IfName    string        `json:"ifname,omitempty"`
	Network   string        `json:"network,omitempty"`
	Plugin    string        `json:"plugin"`
	Says      string        `json:"says"` // verdict or error
	Remedy    string        `json:"remedy,omitempty"`
}

// Key is the key in Recent.Worked.
func (f Failure) Key() string { return f.Network + " " + f.Command }

// Node describes the running cniscope itself.
type Node struct {
	Version string `json:"version"`
	PID     int    `json:"pid"`
	// Parent is containerd for a pre-installed plugin.
	Parent int `json:"parent"`
	// StartedBy names parent and program: "in a pod, /cniscope".
	StartedBy string `json:"started_by,omitempty"`
	// Probe is "attached" or "not attached", NRI "registered", "degraded" or "off".
	Probe string `json:"probe"`
	NRI   string `json:"nri"`
	// Missed counts probe runs skipped by the kernel while the BPF program ran on that CPU.
	Missed  uint64   `json:"missed,omitempty"`
	Trusted []string `json:"trusted,omitempty"`
}

// Handlers answer root's requests, concurrently.
type Handlers struct {
	ReadHandlers
	Recent   func() Recent
	Baseline func() *baseline.Document
}

const farewell = time.Second

// Serve serves l until ctx ends, which also cancels Handlers.Record.
func Serve(ctx context.Context, l net.Listener, h Handlers, log *slog.Logger) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /calls", func(w http.ResponseWriter, _ *http.Request) { answer(w, h.Calls()) })
	mux.HandleFunc("GET /node", func(w http.ResponseWriter, _ *http.Request) { answer(w, h.Node()) })
	mux.HandleFunc("GET /recent", func(w http.ResponseWriter, _ *http.Request) { answer(w, h.Recent()) })
	mux.HandleFunc("GET /baseline", func(w http.ResponseWriter, _ *http.Request) { answer(w, h.Baseline()) })
	mux.Handle("/v1/", (&reads{ReadHandlers: h.ReadHandlers, bounds: rootBounds(), log: log}).handler())
	mux.HandleFunc("GET /record", func(w http.ResponseWriter, r *http.Request) {
		flush := func() { _ = http.NewResponseController(w).Flush() }
		if err := h.Record(r.Context(), w, flush); err != nil && r.Context().Err() == nil {
			log.Warn("a recording over the control socket ended", "error", err)
		}
	})
	server := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
		MaxHeaderBytes:    16 << 10,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	if err := serve.Until(ctx, server, l, farewell); err != nil {
		log.Warn("the control socket is gone; cniscope ps will not work", "error", err)
	}
}

// Now sets State and Waits from /proc. Waits needs CAP_SYS_PTRACE.
func (c *Call) Now() {
	stat, err := procfs.StatOf(int(c.PID))
	if err != nil {
		return
	}
	c.State, c.Waits = stat.State, procfs.Wchan(int(c.PID))
}
