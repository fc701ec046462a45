//go:build linux

// Package scope runs cniscope beside a rig, for end-to-end tests, the demo and benchmarks.
package scope

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/tied"
)

// Build compiles the program into dir, statically as for a release, with more flags of go build.
func Build(ctx context.Context, dir string, flags ...string) (string, error) {
	file := filepath.Join(dir, "cniscope")
	args := append([]string{"build", "-trimpath", "-ldflags", "-s -w", "-o", file}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, "github.com/cniscope/cniscope/plugin/cniscope")...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building cniscope: %w\n%s", err, out)
	}
	return file, nil
}

// Main builds cniscope and runs the tests of a package while no other package observes the host. It returns the exit
// code. Without root it builds nothing, and every test skips.
func Main(tests interface{ Run() int }, program *string) int {
	if os.Geteuid() != 0 {
		return tests.Run()
	}
	dir, err := os.MkdirTemp("", "cniscope-test")
	if err == nil {
		defer os.RemoveAll(dir)
		err = os.Chmod(dir, 0o755) // for tests as an ordinary user
	}
	if err == nil {
		*program, err = Build(context.Background(), dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return harness.Host(tests)
}

// Options configure a run of cniscope.
type Options struct {
	// Program is the binary (see Build).
	Program string
	// Args are the subcommand and its arguments, without --config. Default: run.
	Args []string
	// Dir is the directory of its files. Default: a new one below the rig's.
	Dir string
	// TOML is added to the options for the rig. Sections of those ([nri], [runtime], [cni], [state]) must not
	// repeat.
	TOML string
	// NoNRI disables NRI in the options.
	NoNRI bool
	// Node is the node's name. Default: rig-node.
	Node string
	// State is the state directory, with the control socket. Default: the rig's.
	State string
	// Env is added to its environment.
	Env []string
}

// Scope is a running cniscope.
type Scope struct {
	Dir  string
	cmd  *exec.Cmd
	done chan struct{}
	err  error
	once sync.Once
	toml string
	// killed is set if a test killed it.
	killed atomic.Bool
}

// Rig starts a rig that logs to a test and ends with it.
func Rig(ctx context.Context, t testing.TB, o rig.Options) *rig.Rig {
	t.Helper()
	harness.Root(t)
	o.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	r := harness.Must(rig.Start(ctx, o))(t)
	t.Cleanup(func() { harness.Check(t, r.Close()) })
	return r
}

// Containerd is the directory of an older containerd, such as containerd-1.7; "" is the newest.
func Containerd(t testing.TB, version string) string {
	t.Helper()
	if version == "" {
		return ""
	}
	tools := harness.Must(rig.Tools(filepath.Join(version, "containerd")))(t)
	return filepath.Join(tools, version)
}

// Jaeger starts a Jaeger that logs to a test and ends with it.
func Jaeger(ctx context.Context, t testing.TB) *rig.Jaeger {
	t.Helper()
	harness.Root(t)
	j := harness.Must(rig.StartJaeger(ctx, rig.JaegerOptions{Log: slog.New(slog.NewTextHandler(t.Output(), nil))}))(t)
	t.Cleanup(func() { harness.Check(t, j.Close()) })
	return j
}

// Observe is Start for a test: cniscope ends with the test, and a failed test prints its log.
func Observe(ctx context.Context, t testing.TB, r *rig.Rig, o Options) *Scope {
	t.Helper()
	s := harness.Must(Start(ctx, r, o))(t)
	t.Cleanup(func() {
		if err := s.Stop(); err != nil && !s.killed.Load() {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("cniscope's log:\n%s", s.LogText())
		}
	})
	return s
}

// Start runs cniscope on the rig, and returns when it observes calls.
func Start(ctx context.Context, r *rig.Rig, o Options) (*Scope, error) {
	s := &Scope{Dir: o.Dir, done: make(chan struct{})}
	if s.Dir == "" {
		dir, err := os.MkdirTemp(r.Dir(), "scope")
		if err != nil {
			return nil, err
		}
		s.Dir = dir
	}
	node := o.Node
	if node == "" {
		node = "rig-node"
	}
	s.toml = Leads(r, node, !o.NoNRI)
	if o.State != "" {
		s.toml = strings.Replace(s.toml, strconv.Quote(filepath.Join(r.Dir(), "run")), strconv.Quote(o.State), 1)
	}
	if err := s.SetOptions(o.TOML); err != nil {
		return nil, err
	}
	args := o.Args
	if len(args) == 0 {
		args = []string{"run"}
	}
	log, err := os.Create(s.Log())
	if err != nil {
		return nil, err
	}
	defer log.Close()
	s.cmd = exec.Command(o.Program, append(args, "--config", s.Config())...)
	s.cmd.Env = append(append(os.Environ(), r.Env()), o.Env...)
	s.cmd.Stderr = log
	s.cmd.Stdout = log
	// It ends with its parent, even if the parent is killed.
	if err := tied.Start(s.cmd); err != nil {
		return nil, fmt.Errorf("starting cniscope: %w", err)
	}
	go func() {
		s.err = s.cmd.Wait()
		close(s.done)
	}()
	return s, s.WaitLog(ctx, "observing CNI calls", 1)
}

// Leads returns options that lead cniscope to a rig.
func Leads(r *rig.Rig, node string, nri bool) string {
	return fmt.Sprintf("[nri]\nsocket = %q\nenabled = %v\n[runtime]\nsocket = %q\n[cni]\nconf_dir = %q\n[state]\ndir = %q\n[resource]\nnode = %q\n",
		r.NRISocket(), nri, r.Socket(), r.CNIConfDir(), filepath.Join(r.Dir(), "run"), node)
}

// Config is the path of its configuration file.
func (s *Scope) Config() string { return filepath.Join(s.Dir, "options", "cniscope.toml") }

// SetOptions replaces the added options.
func (s *Scope) SetOptions(toml string) error {
	if err := os.MkdirAll(filepath.Dir(s.Config()), 0o755); err != nil {
		return err
	}
	next := s.Config() + ".next"
	if err := os.WriteFile(next, []byte(s.toml+observedBy(toml)), 0o600); err != nil {
		return err
	}
	return os.Rename(next, s.Config())
}

// SourceVariable sets probe.source in all tests. The process connector works only in the initial PID namespace.
const SourceVariable = "CNISCOPE_TEST_SOURCE"

// SeesAnswers reports whether the tests' cniscope sees answers of plugins. The process connector sees only exit
// codes.
func SeesAnswers() bool { return os.Getenv(SourceVariable) != "connector" }

func observedBy(toml string) string {
	source := os.Getenv(SourceVariable)
	if source == "" {
		return toml
	}
	line := fmt.Sprintf("[probe]\nsource = %q\n", source)
	if strings.Contains(toml, "[probe]\n") {
		return strings.Replace(toml, "[probe]\n", line, 1)
	}
	return toml + line
}

// Log is the path of its log.
func (s *Scope) Log() string { return filepath.Join(s.Dir, "log") }

// Done is closed after its exit.
func (s *Scope) Done() <-chan struct{} { return s.done }

// PID is its process id.
func (s *Scope) PID() int { return s.cmd.Process.Pid }

// LogText returns its log so far.
func (s *Scope) LogText() string {
	data, _ := os.ReadFile(s.Log()) // a missing file is an empty log
	return string(data)
}

// WaitLog waits until text was logged n times.
func (s *Scope) WaitLog(ctx context.Context, text string, n int) error {
	for {
		if strings.Count(s.LogText(), text) >= n {
			return nil
		}
		select {
		case <-s.done:
			return fmt.Errorf("cniscope ended: %w\n%s", s.err, s.LogText())
		case <-ctx.Done():
			return fmt.Errorf("waiting for %q in the log: %w\n%s", text, ctx.Err(), s.LogText())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Kill9 kills it.
func (s *Scope) Kill9() {
	s.killed.Store(true)
	s.kill()
}

func (s *Scope) kill() {
	_ = s.cmd.Process.Kill()
	<-s.done
}

// Stop ends it by SIGTERM, and returns its exit error.
func (s *Scope) Stop() error {
	s.once.Do(func() { _ = s.cmd.Process.Signal(syscall.SIGTERM) })
	select {
	case <-s.done:
		return s.err
	case <-time.After(15 * time.Second):
		s.kill()
		return fmt.Errorf("cniscope did not end within 15 s\n%s", s.LogText())
	}
}

// ReadSpans returns the spans of [export.file], including the rotated file: 100 MiB each.
func ReadSpans(file string) ([]byte, error) {
	before, err := os.ReadFile(file + ".1")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	newest, err := os.ReadFile(file)
	return append(before, newest...), err
}
