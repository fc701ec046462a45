//go:build linux

package standin

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/tied"
)

// Options configure a node's programs.
type Options struct {
	// TCP selects loopback addresses instead of unix sockets for database and switch.
	TCP bool
	// Monitor makes the agent monitor the database on its request stream.
	Monitor bool
	// Every is the interval of the agent's unrelated command; 0 for never.
	Every time.Duration
	// Memory bounds the agent's memory in bytes; 0 for no bound.
	Memory int64
	// Disk gives the programs their own file system.
	Disk bool
	Env  []string
}

// Node is a running database, switch and agent.
type Node struct {
	testing.TB
	Dir string
	env []string
	o   Options

	mu       sync.Mutex
	programs map[string]*process
	done     []Entry // injected faults
	ending   sync.WaitGroup
	over     bool
}

type process struct {
	cmd   *exec.Cmd
	stdin io.Writer
	ready chan struct{}
	gone  chan struct{}
}

// Start starts the three. They are this program by other names: its main must call Main.
func Start(t testing.TB, o Options) *Node {
	t.Helper()
	n := &Node{TB: t, Dir: folder(t), o: o, programs: map[string]*process{}}
	self := harness.Must(os.Executable())(t)
	harness.Check(t, os.Mkdir(filepath.Join(n.Dir, "bin"), 0o755))
	for _, name := range []string{Agent, Database, Switch, Control, Periodic} {
		harness.Check(t, os.Symlink(self, filepath.Join(n.Dir, "bin", name)))
	}
	where := map[string]string{databaseKey: "unix " + filepath.Join(n.Dir, "db.sock"), switchKey: "unix " + filepath.Join(n.Dir, "switch.sock")}
	if o.TCP {
		where = map[string]string{databaseKey: "tcp " + harness.Address(t), switchKey: "tcp " + harness.Address(t)}
	}
	n.env = append(append(os.Environ(), o.Env...), dirKey+"="+n.Dir, everyKey+"="+o.Every.String())
	if o.Every == 0 {
		n.env = append(n.env, everyKey+"=never")
	}
	if o.Monitor {
		n.env = append(n.env, monitorKey+"=1")
	}
	for key, at := range where {
		n.env = append(n.env, key+"="+at)
	}
	if o.Disk {
		MountDisk(n, n.Dir)
	}
	t.Cleanup(n.stop)
	for _, name := range []string{Database, Switch, Agent} {
		n.Run(name)
	}
	return n
}

// folder creates a directory without a random name, which would be redacted.
func folder(t testing.TB) (dir string) {
	const all = "/run/cniscope-scenario"
	harness.Check(t, os.MkdirAll(all, 0o755))
	for i := 0; ; i++ {
		dir = fmt.Sprintf("%s/node%d", all, i)
		err := os.Mkdir(dir, 0o755)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		harness.Check(t, err)
		t.Cleanup(func() { os.RemoveAll(dir) })
		return dir
	}
}

// Env is the plugins' environment.
func (n *Node) Env() string { return dirKey + "=" + n.Dir }

// Agent is the agent's address for the plugin's configuration.
func (n *Node) Agent() string { return "unix " + AgentSocket(n.Dir) }

// PID is a program's process id, or 0.
func (n *Node) PID(name string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if p := n.programs[name]; p != nil {
		return p.cmd.Process.Pid
	}
	return 0
}

// Run starts a program and waits until it serves.
func (n *Node) Run(name string) {
	p := harness.Must(n.launch(name))(n)
	select {
	case <-p.ready:
	case <-p.gone:
		n.Fatalf("%s does not serve", name)
	}
}

func (n *Node) launch(name string) (*process, error) {
	p := &process{cmd: exec.Command(filepath.Join(n.Dir, "bin", name)), ready: make(chan struct{}), gone: make(chan struct{})}
	p.cmd.Env, p.cmd.Stderr = n.env, os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.over {
		return nil, fmt.Errorf("%s: the test is over", name)
	}
	if err := tied.Start(p.cmd); err != nil {
		return nil, err
	}
	if name == Agent && n.o.Memory > 0 {
		if err := n.limitMemory(p.cmd.Process.Pid); err != nil {
			return nil, err
		}
	}
	n.programs[name] = p
	go n.listen(p, out)
	return p, nil
}

func (n *Node) listen(p *process, out io.Reader) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() == "ready" {
			close(p.ready)
			continue
		}
		var in Injection
		var container string
		if _, err := fmt.Sscanf(lines.Text(), "ask %q %d %q %q %q", &in.Of, &in.For, &in.Kind, &container, &in.Point); err != nil {
			n.Errorf("%s: %v", lines.Text(), err)
			continue
		}
		began := time.Now()
		end, err := n.Begin(in, container)
		if err != nil {
			n.Errorf("%s at %s: %v", in.Kind, in.Point, err)
		}
		_, _ = io.WriteString(p.stdin, "go\n") // a killed program does not read
		if end != nil {
			n.mu.Lock()
			n.ending.Add(1)
			n.mu.Unlock()
			length := max(in.For, 2*time.Since(began)) // a debugger starts slowly
			time.AfterFunc(length, func() { end(); n.ending.Done() })
		}
	}
	_ = p.cmd.Wait()
	close(p.gone)
}

// Begin starts an injection and returns once it acts. The function ends it; nil if there is nothing to end.
func (n *Node) Begin(in Injection, container string) (end func(), err error) {
	in.Of = programs[in.Of]
	e := Entry{By: in.Of, PID: n.PID(in.Of), Container: container, What: "injected", Name: in.Point + " " + in.Kind, Start: Now()}
	begin := map[string]func(Injection) (func() error, error){
		"stop": n.suspend, "trace": n.suspend, "freeze": n.suspend, "freeze v1": n.suspend, "kill": n.kill, "restart": n.restart,
		"lock": n.lockStore, "rtnl": n.lockKernel, "disk": n.freezeDisk,
	}[in.Kind]
	if begin == nil {
		return nil, fmt.Errorf("there is no injection %q", in.Kind)
	}
	undo, err := begin(in)
	if err != nil {
		return nil, err
	}
	if in.Kind == "trace" { // a debugger starts slowly
		e.Start = Now()
	}
	note := func() {
		if in.Of == "" { // the waiting program notes the duration
			return
		}
		e.End = Now()
		n.mu.Lock()
		defer n.mu.Unlock()
		n.done = append(n.done, e)
	}
	if undo == nil {
		note()
		return nil, nil
	}
	return func() {
		if err := undo(); err != nil {
			n.Errorf("end of %q at %q: %v", in.Kind, in.Point, err)
		}
		note()
	}, nil
}

// Journal returns the entries of the programs and injections for one container, or all if empty.
func (n *Node) Journal(container string) (all []Entry) {
	n.Helper()
	n.ending.Wait()
	text := harness.Must(os.ReadFile(filepath.Join(n.Dir, "journal")))(n)
	n.mu.Lock()
	all = append(all, n.done...)
	n.mu.Unlock()
	for line := range strings.Lines(string(text)) {
		var e Entry
		if json.Unmarshal([]byte(line), &e) == nil {
			all = append(all, e)
		}
	}
	if container == "" {
		return all
	}
	var of []Entry
	for _, e := range all {
		if e.Container == container {
			of = append(of, e)
		}
	}
	return of
}

// SetPeriodic sets the duration of the agent's unrelated command.
func (n *Node) SetPeriodic(length time.Duration) {
	harness.Check(n, os.WriteFile(filepath.Join(n.Dir, "periodic"), []byte(length.String()), 0o600))
}

func (n *Node) stop() {
	n.ending.Wait()
	n.mu.Lock()
	n.over = true
	var all []*process
	for _, p := range n.programs {
		all = append(all, p)
	}
	n.mu.Unlock()
	for _, p := range all {
		_ = p.cmd.Process.Kill()
		<-p.gone
	}
}
