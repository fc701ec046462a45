// Package control lets root ask a running cniscope: what is under way, and what happens
// from now on. It is HTTP over a unix socket in the run folder, which only root can open; on Windows over a named
// pipe, which only administrators and the system can.
package control

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/cniscope/cniscope/pkg/baseline"
	"github.com/cniscope/cniscope/pkg/leak"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/pkg/serve"
)

// Call is a CNI call that is under way.
type Call struct {
	Namespace   string `json:"namespace,omitempty"`
	Pod         string `json:"pod,omitempty"`
	ContainerID string `json:"sandbox,omitempty"`
	Command     string `json:"command"`
	IfName      string `json:"ifname,omitempty"`
	Plugin      string `json:"plugin"`
	// Age is how long the call has been under way, Runs what it runs innermost, in which
	// process, and for how long.
	Age     time.Duration `json:"age_ns"`
	Runs    string        `json:"runs"`
	PID     uint32        `json:"pid"`
	Running time.Duration `json:"running_ns"`
	// State is the process's state as ps(1) has it ("S" sleeps), Waits the kernel
	// function it waits in; empty where it waits for nothing or that cannot be read.
	State string `json:"state,omitempty"`
	Waits string `json:"waits,omitempty"`
	// Asks is the address of the connection that the call has open, Agent who answers there, if that is
	// known, and Asking for how long it has been open. Empty if it has none.
	Asks   string        `json:"asks,omitempty"`
	Agent  string        `json:"agent,omitempty"`
	Asking time.Duration `json:"asking_ns,omitempty"`
}

// Recent is what a running cniscope remembers of calls that are over.
type Recent struct {
	Agents   []Agent   `json:"agents"`
	Failures []Failure `json:"failures"` // the latest last
	// Worked is when a call of a network succeeded last, by Failure.Key.
	Worked map[string]time.Time `json:"worked,omitempty"`
	// Held are the networks that sandboxes were seen to be given and not to give back.
	Held []leak.Attachment `json:"held,omitempty"`
}

// Agent is whom plugins of a network connected to, at one address.
type Agent struct {
	Network string `json:"network"`
	Plugin  string `json:"plugin"`
	Kind    string `json:"kind"`    // "unix" or "tcp"
	Address string `json:"address"` // path, or address:port
	// Name and PID are of who answered last, or made the socket.
	Name string `json:"name,omitempty"`
	PID  uint32 `json:"pid,omitempty"`
	// Answered and Failed are the last times that a call which connected there succeeded, or did not: Error
	// is why, and Failures how many have failed since one succeeded.
	Answered time.Time `json:"answered,omitzero"`
	Failed   time.Time `json:"failed,omitzero"`
	Error    string    `json:"error,omitempty"`
	Failures int       `json:"failures,omitempty"`
}

// Failure is a call that failed.
type Failure struct {
	Time      time.Time     `json:"time"`
	Took      time.Duration `json:"took_ns"`
	Namespace string        `json:"namespace,omitempty"`
	Pod       string        `json:"pod,omitempty"`
	Command   string        `json:"command"`
	IfName    string        `json:"ifname,omitempty"`
	Network   string        `json:"network,omitempty"`
	Plugin    string        `json:"plugin"`
	Says      string        `json:"says"` // the verdict, or what failed
	Remedy    string        `json:"remedy,omitempty"`
}

// Key is what Recent.Worked knows a failure's network and command by.
func (f Failure) Key() string { return f.Network + " " + f.Command }

// Node is the running cniscope itself.
type Node struct {
	Version string `json:"version"`
	PID     int    `json:"pid"`
	// Parent is the process that started it: containerd's, for a pre-installed plugin.
	Parent int `json:"parent"`
	// StartedBy says who started it and where its program is, in words, as "in a pod, /cniscope".
	StartedBy string `json:"started_by,omitempty"`
	// Probe is "attached" or "not attached", NRI "registered", "degraded" or "off".
	Probe string `json:"probe"`
	NRI   string `json:"nri"`
	// Missed is how often the kernel did not run a BPF program when it should have: while one was already under way on
	// that CPU (it was preempted or interrupted).
	Missed uint64 `json:"missed,omitempty"`
	// Believed is who runs CNI plugins, in words; nobody where the runtime is not known.
	Believed []string `json:"believed,omitempty"`
}

// Handlers answer questions. They are called from several goroutines.
type Handlers struct {
	// Calls returns what is under way.
	Calls func() []Call
	// Node returns how cniscope itself is doing.
	Node func() Node
	// Recent returns what is remembered of calls that are over.
	Recent func() Recent
	// Record writes a recording of what happens from now on until ctx ends; it calls
	// flush when the reader should see what there is.
	Record func(ctx context.Context, w http.ResponseWriter, flush func()) error
	// Baseline returns what is usual on the node.
	Baseline func() *baseline.Document
	// Read answers what readers are answered over the read-only socket, too. Root has places of its own.
	Read ReadHandlers
}

// farewell is how long answers under way may take when it is over: a recording has its last
// events to write, to somebody who reads them or not.
const farewell = time.Second

// Serve answers on l until ctx ends; Handlers.Record is told so. When it returns, everything is closed.
func Serve(ctx context.Context, l net.Listener, h Handlers, log *slog.Logger) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /calls", func(w http.ResponseWriter, _ *http.Request) { answer(w, h.Calls()) })
	mux.HandleFunc("GET /node", func(w http.ResponseWriter, _ *http.Request) { answer(w, h.Node()) })
	mux.HandleFunc("GET /recent", func(w http.ResponseWriter, _ *http.Request) { answer(w, h.Recent()) })
	mux.HandleFunc("GET /baseline", func(w http.ResponseWriter, _ *http.Request) { answer(w, h.Baseline()) })
	mux.Handle("/v1/", (&reads{ReadHandlers: h.Read, bounds: rootBounds(), log: log}).handler())
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

// Now fills in what the call's process does at this moment, where /proc says so. Waits takes
// CAP_SYS_PTRACE.
func (c *Call) Now() {
	stat, err := procfs.StatOf(int(c.PID))
	if err != nil {
		return
	}
	c.State, c.Waits = stat.State, procfs.Wchan(int(c.PID))
}
