//go:build linux

// Package standin has programs that do what a CNI agent with a virtual switch does on a node, so that
// its shape can be tested where the real ones cannot be built:
//
//   - vs-cni is the plugin. It hands every call to the agent, by gRPC over a unix socket.
//   - vs-agent dialled its database and its switch when it started. For a call it runs the IPAM plugin
//     itself, creates the interfaces, sets the host's end up by its number only, adds a port to the
//     database, waits until the switch has given that a number, and sends flows to the switch. It goes
//     on when it has answered, and now and then runs a command that has to do with no call.
//   - vs-db is the database: JSON-RPC, with notifications for those that monitor it. It has one thread of
//     work, and withholds the answer to a wait until what was waited for is there.
//   - vs-switchd is the switch: it monitors the database, and answers by writing to it.
//   - vs-ipam is an IPAM plugin, vs-ctl and vs-set are commands, vs-rtnl holds the kernel's lock.
//
// Each of them can be told to lose time at one named point of one call (Injection), and keeps a journal
// of what it did for whom, in monotonic nanoseconds, which is what a test holds against the spans.
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

// The programs. A process is one of them if its file is called so.
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

// What the programs are told by their environment.
const (
	// dirKey is the folder in which they keep what they have, and which has their programs in bin.
	dirKey = "CNISCOPE_STANDIN"
	// everyKey is how often the agent runs its command that has to do with no call; never if it is empty.
	everyKey = "CNISCOPE_STANDIN_EVERY"
	// databaseKey and switchKey are where database and switch listen: "unix /path", "tcp host:port".
	databaseKey = "CNISCOPE_STANDIN_DB"
	switchKey   = "CNISCOPE_STANDIN_SWITCH"
	// monitorKey has the agent monitor the database on the same stream on which it asks it.
	monitorKey = "CNISCOPE_STANDIN_MONITOR"
)

// Main runs the program of that name, and returns its exit code; false if there is none.
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

// Programs are the names of those that have to be in the CNI folder.
func Programs() []string { return []string{Plugin, IPAM} }

// Now is the clock of all journals: monotonic nanoseconds, as the kernel's events have them.
func Now() int64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	return now.Nano()
}

// Entry is something that one of the programs did, or that was done to it.
type Entry struct {
	By         string // the program
	PID        int    // of whoever did it: of a command its own
	Container  string // for whom; empty if for nobody
	What       string // "command", "delegate", "request", "exchange", "call", "injected"
	Name       string // a program, an interface, a peer, the point of an injection
	Start, End int64  // see Now
}

// journal is a program's own record. It is written to a file line by line, so that it outlives who
// wrote it.
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

// note writes an entry that began then and ends now.
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

// during does something and notes it.
func (j *journal) during(e Entry, do func() error) error {
	e.Start = Now()
	err := do()
	j.note(e)
	return err
}

// Injection has a program lose time at a point of a call.
type Injection struct {
	// Point is one of Points.
	Point string
	// Kind is what happens there: "sleep", "compute", those of Stop, "kill", "restart", "command",
	// "command's child", "anonymous command", "lock", "rtnl", "disk", "memory".
	Kind string
	// Of is whom it happens to: "agent", "db" or "switch", as the part of Point before the dot. What a
	// plugin is told does not leave cniscope, and it is told this: so it is not the program's name.
	Of  string
	For time.Duration
}

// programs are the programs by their parts.
var programs = map[string]string{"agent": Agent, "db": Database, "switch": Switch}

// Points are the places at which a call can lose time, in the order in which it comes to them. What comes
// before the dot is the program.
var Points = []string{
	"agent.begin", "ipam.begin", "agent.ipam", "agent.link", "agent.lock", "agent.port", "db.insert", "switch.update", "db.answer",
	"agent.flows", "switch.flows", "agent.end",
}

// Behind is the point behind the agent's answer.
const Behind = "agent.behind"
