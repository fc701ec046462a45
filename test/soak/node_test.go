//go:build linux

package soak

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/port"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
	"github.com/cniscope/cniscope/test/soak/agentd/protocol"
	"github.com/cniscope/cniscope/test/tied"
)

const patience = time.Minute

type node struct {
	*testing.T
	dir       string // on disk: received data
	disk      string // the spool's own file system
	rig       *rig.Rig
	witness   *witness
	keys      *keys
	collector *collector
	upstream  *collector
	agentd    string // the program
	agent     *exec.Cmd
	metrics   *port.Port
	options   string
	names     map[string]string // of the previous round's pods, by sandbox

	mu    sync.Mutex
	lives []*life
}

// A life is one cniscope process, in monotonic nanoseconds.
type life struct {
	Number          int
	Attached, Ended int64
	How             string // reason of its end: "killed", "stopped", or "died" if unintended
	Lost            map[string]float64
	Pods            int
	scope           *scope.Scope
}

func newNode(ctx context.Context, t *testing.T, dir string) *node {
	t.Helper()
	harness.Root(t)
	n := &node{T: t, dir: dir, names: map[string]string{}}
	n.agentd = filepath.Join(t.TempDir(), protocol.Agent)
	harness.Check(t, os.Rename(harness.Build(t, "./agentd"), n.agentd))
	plugin := harness.Must(os.ReadFile(n.agentd))(t)
	n.metrics = harness.Must(port.Reserve())(t)
	t.Cleanup(n.metrics.Close)
	relay := harness.Must(port.Reserve())(t)
	t.Cleanup(relay.Close)

	n.rig = scope.Rig(ctx, t, rig.Options{
		Networks: []rig.Network{{Plugins: []rig.Plugin{rig.Bridge(), rig.Portmap(), rig.Firewall(), n.asks}}},
		Plugins:  map[string][]byte{protocol.Plugin: plugin},
		OTLP:     "http://" + relay.Addr, Ready: patience,
	})
	n.witness = harness.Must(newWitness(n.rig.Dir()))(t)
	t.Cleanup(func() { harness.Check(t, n.witness.close()) })
	harness.Check(t, n.mountDisk())
	n.keys = harness.Must(newKeys(filepath.Join(n.rig.Dir(), "keys")))(t)
	for name, c := range map[string]**collector{"calls": &n.collector, "upstream": &n.upstream} {
		*c = harness.Must(newCollector(n.keys, filepath.Join(dir, name+".jsonl")))(t)
		t.Cleanup(func() { harness.Check(t, (*c).close()) })
	}
	harness.Check(t, n.startAgent())
	t.Cleanup(func() { _ = n.agent.Process.Kill(); _ = n.agent.Wait() })
	// Default options except for addresses and paths.
	n.options = fmt.Sprintf("[export.otlp]\nendpoint = %q\nca = %q\ncert = %q\nkey = %q\n[export.spool]\ndir = %q\n[relay]\nlisten = %q\nupstream = %q\n[metrics]\nlisten = %q\n",
		n.collector.address(), n.keys.pem("ca.crt"), n.keys.pem("client.crt"), n.keys.pem("client.key"),
		filepath.Join(n.disk, "spool"), relay.Addr, n.upstream.address(), n.metrics.Addr)
	harness.Check(t, n.start(ctx))
	t.Cleanup(func() {
		if n.current().How == "" {
			harness.Check(t, n.current().scope.Stop())
		}
	})
	return n
}

// asks is the chain's last plugin, which calls the agent.
func (n *node) asks(rig.Net) rig.Conf {
	return rig.Conf{"type": protocol.Plugin, "agent": n.socket()}
}

func (n *node) socket() string { return filepath.Join(filepath.Dir(n.agentd), "agent.sock") }

func (n *node) journal() string { return filepath.Join(n.dir, "agent.jsonl") }

func (n *node) startAgent() error {
	n.agent = exec.Command(n.agentd, n.socket(), n.journal())
	n.agent.Env = append(os.Environ(), n.rig.Env())
	if err := tied.Start(n.agent); err != nil {
		return fmt.Errorf("start the agent: %w", err)
	}
	return nil
}

func (n *node) mountDisk() error {
	n.disk = filepath.Join(n.rig.Dir(), "disk")
	if err := os.Mkdir(n.disk, 0o700); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", n.disk, "tmpfs", 0, "size=300m,mode=700"); err != nil {
		return fmt.Errorf("mount the spool's disk: %w", err)
	}
	return nil
}

func (n *node) current() *life {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.lives[len(n.lives)-1]
}

func (n *node) start(ctx context.Context) error {
	n.mu.Lock()
	l := &life{Number: len(n.lives) + 1}
	n.mu.Unlock()
	dir := filepath.Join(n.rig.Dir(), fmt.Sprintf("life-%d", l.Number))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var err error
	if l.scope, err = scope.Start(ctx, n.rig, scope.Options{Program: program, Dir: dir, TOML: n.options}); err != nil {
		return err
	}
	l.Attached = protocol.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lives = append(n.lives, l)
	go func() {
		<-l.scope.Done()
		n.mu.Lock()
		defer n.mu.Unlock()
		if l.How == "" {
			l.How, l.Ended = "died", protocol.Now()
		}
	}()
	return nil
}

func (n *node) end(how string) {
	lost := n.lost()
	l := n.current()
	n.mu.Lock()
	defer n.mu.Unlock()
	l.How, l.Ended, l.Lost = how, protocol.Now(), lost
}

// over returns how the life ended; "" while it runs.
func (n *node) over() string {
	l := n.current()
	n.mu.Lock()
	defer n.mu.Unlock()
	return l.How
}

// ready is nil once the runtime answers and cniscope observes, knows pods and has sent everything.
func (n *node) ready(ctx context.Context) error {
	if _, err := n.rig.Status(ctx); err != nil {
		return err
	}
	m, err := n.scrape(ctx)
	if err != nil {
		return err
	}
	for name, want := range map[string]float64{
		"cniscope_probe_attached": 1, `cniscope_feature_up{feature="nri"}`: 1, "cniscope_relay_queue_bytes": 0,
		`cniscope_spool_waiting_bytes{destination="otlp"}`: 0, `cniscope_export_failing_seconds{destination="otlp"}`: 0,
	} {
		if got, is := m[name]; !is || got != want {
			return fmt.Errorf("%s is %v (%v), want %v", name, got, is, want)
		}
	}
	return nil
}

// asBefore waits for the normal state: a test pod's setup arrives with NRI's data, and everything is quiet.
func (n *node) asBefore(ctx context.Context, name string) error {
	if err := eventually(ctx, func() error { return n.ready(ctx) }); err != nil {
		return err
	}
	one := n.pod(ctx, name)
	if one.Err != "" {
		return fmt.Errorf("a pod fails after all is undone: %s", one.Err)
	}
	err := eventually(ctx, func() error {
		for _, c := range n.collector.got() {
			if c.Container == one.ID && c.Attrs["cniscope.sandbox_running"] == "true" {
				return nil
			}
		}
		return fmt.Errorf("the setup of %s has not arrived with what NRI knows", name)
	})
	if err != nil {
		return err
	}
	return eventually(ctx, func() error { return n.ready(ctx) })
}

// eventually polls ok until it succeeds; it returns the last error when ctx ends.
func eventually(ctx context.Context, ok func() error) error {
	for {
		err := ok()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (n *node) tail() string {
	lines := strings.Split(strings.TrimSpace(n.current().scope.LogText()), "\n")
	return strings.Join(lines[max(0, len(lines)-40):], "\n")
}
