//go:build linux

package soak

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

type fault struct {
	kind string
	part string // the affected part; a round has one fault per part
	// fails means that pods may fail even without cniscope.
	fails bool
	// ends means that cniscope may exit and is restarted.
	ends  bool
	begin func(context.Context, *node) (undo doing, err error)
}

const (
	ofCniscope   = "cniscope"
	ofContainerd = "containerd"
	ofAgent      = "agent"
	ofCollector  = "collector"
	ofUpstream   = "upstream"
	ofDisk       = "disk"
)

type doing = func(context.Context) error

func faults() []fault {
	return []fault{
		{kind: "cniscope killed", part: ofCniscope, ends: true, begin: by((*node).killed)},
		{kind: "cniscope restarted", part: ofCniscope, ends: true, begin: by((*node).restarted)},
		{kind: "cniscope stopped", part: ofCniscope, begin: signalled((*node).cniscope)},
		{kind: "cniscope starved", part: ofCniscope, begin: limited(starved)},
		{kind: "cniscope out of memory", part: ofCniscope, ends: true, begin: limited(noMemory)},
		{kind: "cniscope out of PIDs", part: ofCniscope, ends: true, begin: limited(noThreads)},
		{kind: "cniscope out of descriptors", part: ofCniscope, begin: by((*node).fewDescriptors)},
		{kind: "options changed", part: ofCniscope, begin: by((*node).changedOptions)},
		{kind: "options changed by link", part: ofCniscope, begin: by((*node).linkedOptions)},
		{kind: "options wrong", part: ofCniscope, begin: by((*node).wrongOptions)},
		{kind: "NRI disconnected", part: ofCniscope, begin: by((*node).disconnected)},
		{kind: "containerd killed", part: ofContainerd, fails: true, begin: by((*node).killedContainerd)},
		{kind: "containerd restarted", part: ofContainerd, fails: true, begin: by((*node).restartedContainerd)},
		{kind: "containerd stopped", part: ofContainerd, fails: true, begin: signalled(func(n *node) int { return n.rig.ContainerdPID() })},
		{kind: "agent killed", part: ofAgent, fails: true, begin: by((*node).killedAgent)},
		{kind: "agent stopped", part: ofAgent, begin: signalled(func(n *node) int { return n.agent.Process.Pid })},
		{kind: "collector down", part: ofCollector, begin: collectorDown((*node).endpoint)},
		{kind: "collector slow", part: ofCollector, begin: collecting(isSlow)},
		{kind: "collector refusing", part: ofCollector, begin: collecting(refuses)},
		{kind: "collector silent", part: ofCollector, begin: collecting(isSilent)},
		{kind: "certificate rotated", part: ofCollector, begin: by((*node).rotated)},
		{kind: "upstream away", part: ofUpstream, begin: collectorDown(func(n *node) *collector { return n.upstream })},
		{kind: "disk full", part: ofDisk, begin: by((*node).full)},
	}
}

func faultOf(kind string) fault {
	for _, f := range faults() {
		if f.kind == kind {
			return f
		}
	}
	return fault{kind: kind}
}

func by(do func(*node, context.Context) (doing, error)) func(context.Context, *node) (doing, error) {
	return func(ctx context.Context, n *node) (doing, error) { return do(n, ctx) }
}

func (n *node) cniscope() int { return n.current().scope.PID() }

func (n *node) endpoint() *collector { return n.collector }

func (n *node) killed(context.Context) (doing, error) {
	n.end("killed")
	n.current().scope.Kill9()
	return n.start, nil
}

func (n *node) restarted(context.Context) (doing, error) {
	n.end("stopped")
	s := n.current().scope
	if err := unix.Kill(s.PID(), unix.SIGTERM); err != nil {
		return n.start, fmt.Errorf("stop cniscope: %w", err)
	}
	select {
	case <-s.Done():
	case <-time.After(patience): // a running export has its own timeout
		s.Kill9()
		return n.start, errors.New("cniscope does not end")
	}
	return n.start, nil
}

func signalled(of func(*node) int) func(context.Context, *node) (doing, error) {
	return func(_ context.Context, n *node) (doing, error) {
		pid := of(n)
		if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
			return nil, fmt.Errorf("stop process %d: %w", pid, err)
		}
		return func(context.Context) error { return unix.Kill(pid, unix.SIGCONT) }, nil
	}
}

func limited(l limit) func(context.Context, *node) (doing, error) {
	return func(_ context.Context, n *node) (doing, error) {
		g, err := confine(l, n.cniscope())
		if err != nil {
			return nil, err
		}
		return func(context.Context) error { return g.free() }, nil
	}
}

func (n *node) fewDescriptors(context.Context) (doing, error) {
	pid := n.cniscope()
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return nil, err
	}
	var before unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &before); err != nil {
		return nil, fmt.Errorf("read the limits of process %d: %w", pid, err)
	}
	few := unix.Rlimit{Cur: uint64(len(open)), Max: before.Max}
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &few, nil); err != nil {
		return nil, fmt.Errorf("limit the descriptors of process %d: %w", pid, err)
	}
	return func(context.Context) error { return unix.Prlimit(pid, unix.RLIMIT_NOFILE, &before, nil) }, nil
}

const changed = "[slow]\ncommand = \"333ms\"\n"

// changedOptions replaces the file like an editor.
func (n *node) changedOptions(ctx context.Context) (doing, error) {
	s := n.current().scope
	return n.taking(ctx, s.LogText, "options changed", func() error { return s.SetOptions(n.options + changed) })
}

// linkedOptions replaces the file's link target like a kubelet.
func (n *node) linkedOptions(ctx context.Context) (doing, error) {
	s := n.current().scope
	return n.taking(ctx, s.LogText, "options changed", func() error { return linked(s.Config(), changed) })
}

func (n *node) wrongOptions(ctx context.Context) (doing, error) {
	s := n.current().scope
	return n.taking(ctx, s.LogText, "options", func() error { return s.SetOptions(n.options + "[slow\n") })
}

// taking changes options, waits for cniscope's log, and returns the undo.
func (n *node) taking(ctx context.Context, log func() string, says string, change func() error) (doing, error) {
	s := n.current().scope
	said := func(do func() error) error {
		before := strings.Count(log(), says)
		if err := do(); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		return s.WaitLog(ctx, says, before+1)
	}
	back := func(context.Context) error {
		return said(func() error { return s.SetOptions(n.options) })
	}
	return back, said(change)
}

// linked turns an options file into a ConfigMap's two links and replaces the inner one.
func linked(file, more string) error {
	dir := filepath.Dir(file)
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for i, content := range []string{string(text), string(text) + more} {
		version := fmt.Sprintf("..%d", i)
		if err := os.MkdirAll(filepath.Join(dir, version), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, version, filepath.Base(file)), []byte(content), 0o600); err != nil {
			return err
		}
		if err := point(version, filepath.Join(dir, "..data")); err != nil {
			return err
		}
		if err := point(filepath.Join("..data", filepath.Base(file)), file); err != nil {
			return err
		}
	}
	return nil
}

func point(to, at string) error {
	next := at + ".link"
	if err := os.Remove(next); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Symlink(to, next); err != nil {
		return err
	}
	return os.Rename(next, at)
}

func (n *node) disconnected(context.Context) (doing, error) {
	connections, err := disconnect(n.cniscope(), n.rig.NRISocket())
	if err == nil && connections == 0 {
		err = errors.New("cniscope has no connection to NRI")
	}
	return nothing, err
}

func nothing(context.Context) error { return nil }

func (n *node) killedContainerd(context.Context) (doing, error) {
	n.rig.Kill9Containerd()
	return n.rig.RestartContainerd, nil
}

func (n *node) restartedContainerd(context.Context) (doing, error) {
	n.rig.StopContainerd()
	return n.rig.RestartContainerd, nil
}

func (n *node) killedAgent(context.Context) (doing, error) {
	if err := n.agent.Process.Kill(); err != nil {
		return nil, err
	}
	_ = n.agent.Wait() // killed
	return func(context.Context) error { return n.startAgent() }, nil
}

func collectorDown(of func(*node) *collector) func(context.Context, *node) (doing, error) {
	return func(_ context.Context, n *node) (doing, error) {
		c := of(n)
		return func(context.Context) error { return c.up() }, c.down()
	}
}

func collecting(b behaviour) func(context.Context, *node) (doing, error) {
	return func(_ context.Context, n *node) (doing, error) {
		n.collector.behave(b)
		return func(context.Context) error { n.collector.behave(takes); return nil }, nil
	}
}

func (n *node) rotated(context.Context) (doing, error) {
	if err := n.keys.rotate(); err != nil {
		return nil, err
	}
	for _, c := range []*collector{n.collector, n.upstream} {
		if err := errors.Join(c.down(), c.up()); err != nil {
			return nil, err
		}
	}
	return nothing, nil
}

func (n *node) full(context.Context) (doing, error) {
	file := filepath.Join(n.disk, "filled")
	f, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	empty := func(context.Context) error { return os.Remove(file) }
	block := make([]byte, 1<<20)
	for size := len(block); size > 0; {
		if _, err := f.Write(block[:size]); errors.Is(err, unix.ENOSPC) {
			size /= 2
		} else if err != nil {
			return empty, err
		}
	}
	return empty, nil
}
