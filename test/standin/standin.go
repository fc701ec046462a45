//go:build linux

// Package standin has programs shaped like a CNI agent with a virtual switch, for tests where real ones cannot be
// built:
//
//   - vs-cni is the plugin, which forwards calls to the agent by gRPC over a unix socket.
//   - vs-agent is connected to database and switch. For a call it runs the IPAM plugin, creates the
//     interfaces (the host's end by index only), inserts a port, waits for its number, and sends flows. It
//     works on after its answer, and periodically runs an unrelated command.
//   - vs-db is a JSON-RPC database with notifications and one worker thread; it withholds a wait's answer.
//   - vs-switchd is the switch: it monitors the database and answers by writing to it.
//   - vs-ipam is an IPAM plugin, vs-ctl and vs-set are commands, vs-rtnl holds the kernel's lock.
//
// Each can lose time at a named point of a call (Injection), and keeps a journal in monotonic nanoseconds, which
// tests compare with the spans.
package standin

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Programs, by file name.
const (
	Plugin   = "vs-cni"
	Agent    = "vs-agent"
	Database = "vs-db"
	Switch   = "vs-switchd"
	IPAM     = "vs-ipam"
	Control  = "vs-ctl"
	Periodic = "vs-set"
	rtnlName = "vs-rtnl"
)

const (
	dirKey = "CNISCOPE_STANDIN"
	// everyKey is the interval of the agent's unrelated command, if set.
	everyKey = "CNISCOPE_STANDIN_EVERY"
	// databaseKey and switchKey are addresses: "unix /path", "tcp host:port".
	databaseKey = "CNISCOPE_STANDIN_DB"
	switchKey   = "CNISCOPE_STANDIN_SWITCH"
	monitorKey  = "CNISCOPE_STANDIN_MONITOR"
)

// Main runs the program with that name and returns its exit code; false if there is none.
func Main(name string) (code int, is bool) {
	mains := map[string]func() error{
		Plugin: plug, Agent: serveAgent, Database: serveDatabase, Switch: serveSwitch,
		IPAM: lease, Control: command, Periodic: command, rtnlName: holdRtnl,
	}
	program := mains[name]
	if program == nil {
		return 0, false
	}
	if err := program(); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 1, true
	}
	return 0, true
}

// Programs are the plugins for the CNI directory.
func Programs() []string { return []string{Plugin, IPAM} }

// Now is the clock of all journals: monotonic nanoseconds, like kernel events.
func Now() int64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	return now.Nano()
}

// Entry is an action of a program, or an injection.
type Entry struct {
	By         string // the program
	PID        int    // of the acting process
	Container  string // empty for none
	What       string // "command", "delegate", "request", "exchange", "call", "injected"
	Name       string // a program, interface, peer, or injection point
	Start, End int64  // see Now
}

// journal is a program's record, a file written line by line so that it survives the program.
type journal struct {
	mu   sync.Mutex
	file *os.File
	by   string
}

func openJournal(by string) (*journal, error) {
	f, err := os.OpenFile(filepath.Join(os.Getenv(dirKey), "journal"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &journal{file: f, by: by}, nil
}

func (j *journal) note(e Entry) {
	e.By, e.End = j.by, Now()
	if e.PID == 0 {
		e.PID = os.Getpid()
	}
	text, err := json.Marshal(e)
	if err != nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	_, _ = j.file.Write(append(text, '\n'))
}

func (j *journal) during(e Entry, do func() error) error {
	e.Start = Now()
	err := do()
	j.note(e)
	return err
}

// Injection makes a program lose time at a point of a call.
type Injection struct {
	Point string
	// Kind is the fault: "sleep", "compute", those of Stop, "kill", "restart", "command", "command's child",
	// "anonymous command", "lock", "rtnl", "disk", "memory".
	Kind string
	// Of is the affected part: "agent", "db" or "switch", as in Point. It is not the program's name, because
	// cniscope redacts a plugin's input.
	Of  string
	For time.Duration
}

var programs = map[string]string{"agent": Agent, "db": Database, "switch": Switch}

// Points are the places where a call can lose time, in order. The part before the dot is the program.
var Points = []string{
	"agent.begin", "ipam.begin", "agent.ipam", "agent.link", "agent.lock", "agent.port", "db.insert", "switch.update", "db.answer",
	"agent.flows", "switch.flows", "agent.end",
}

// Behind is the point after the agent's answer.
const Behind = "agent.behind"
