//go:build linux

package nri

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/adaptation"
	"github.com/containerd/nri/pkg/api"
	nrilog "github.com/containerd/nri/pkg/log"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/record"
	"github.com/cniscope/cniscope/test/harness"
)

// testPace is defaultPace, only faster.
var testPace = pace{
	first:   time.Millisecond,
	missing: 20 * time.Millisecond,
	refused: 20 * time.Millisecond,
	steady:  time.Hour,
	start:   300 * time.Millisecond,
	settle:  time.Second,
	stop:    10 * time.Second,
}

func pod(id string) *api.PodSandbox {
	return &api.PodSandbox{Id: id, Name: "name-" + id, Namespace: "default", Uid: "uid-" + id}
}

// runtimeSide is the runtime's side of NRI, as containerd embeds it.
type runtimeSide struct{ *adaptation.Adaptation }

// startRuntime listens on DIR/nri.sock and starts the plugins in DIR/plugins.
func startRuntime(dir string, present ...*api.PodSandbox) (runtimeSide, error) {
	a, err := adaptation.New("containerd", "v2.4.2",
		func(ctx context.Context, sync adaptation.SyncCB) error {
			_, err := sync(ctx, present, nil)
			return err
		},
		func(context.Context, []*api.ContainerUpdate) ([]*api.ContainerUpdate, error) {
			return nil, errors.New("a plugin that only watches asked for a change")
		},
		adaptation.WithSocketPath(filepath.Join(dir, "nri.sock")),
		adaptation.WithPluginPath(filepath.Join(dir, "plugins")),
		adaptation.WithPluginConfigPath(filepath.Join(dir, "conf.d")),
	)
	if err != nil {
		return runtimeSide{}, err
	}
	return runtimeSide{a}, a.Start()
}

// run sends no request while a plugin synchronizes, as containerd.
func (r runtimeSide) run(ctx context.Context, pod *api.PodSandbox) error {
	defer r.BlockPluginSync().Unblock()
	return r.RunPodSandbox(ctx, &api.RunPodSandboxRequest{Pod: pod})
}

func (r runtimeSide) stop(ctx context.Context, pod *api.PodSandbox) error {
	defer r.BlockPluginSync().Unblock()
	return r.StopPodSandbox(ctx, &api.StopPodSandboxRequest{Pod: pod})
}

func (r runtimeSide) remove(ctx context.Context, pod *api.PodSandbox) error {
	defer r.BlockPluginSync().Unblock()
	return r.RemovePodSandbox(ctx, &api.RemovePodSandboxRequest{Pod: pod})
}

// process is a runtime that the test can kill.
type process struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Scanner
}

func startProcess(t *testing.T, dir string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), runtimeDir+"="+dir)
	cmd.Stderr = os.Stderr
	in := harness.Must(cmd.StdinPipe())(t)
	out := harness.Must(cmd.StdoutPipe())(t)
	harness.Check(t, cmd.Start())
	p := &process{t: t, cmd: cmd, in: in, out: bufio.NewScanner(out)}
	t.Cleanup(p.kill)
	p.expect("ready")
	return p
}

func (p *process) expect(line string) {
	p.t.Helper()
	if !p.out.Scan() || p.out.Text() != line {
		p.t.Fatalf("the runtime says %q, not %q", p.out.Text(), line)
	}
}

func (p *process) run(id string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, "run "+id+"\n"); err != nil {
		p.t.Fatal(err)
	}
	p.expect("ok")
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

type seen struct {
	mu     sync.Mutex
	events []event.Event // without registrations
	// registered lists the runtimes' PIDs.
	registered []uint32
}

func (s *seen) sink(e event.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, is := e.Body.(*event.Registered); is {
		s.registered = append(s.registered, r.PID)
		return
	}
	s.events = append(s.events, e)
}

func (s *seen) all() []event.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]event.Event(nil), s.events...)
}

// phases lists sandbox events as "phase id", and changes of NRI's availability.
func phases(events []event.Event) (out []string) {
	for _, e := range events {
		switch body := e.Body.(type) {
		case *event.Sandbox:
			out = append(out, string(body.Phase)+" "+body.ID)
		case *event.Degraded:
			if body.Restored {
				out = append(out, "restored")
			} else {
				out = append(out, "degraded")
			}
		}
	}
	return out
}

func start(t *testing.T, o Options, sink event.Sink) *Plugin {
	t.Helper()
	p := New(o)
	p.pace = testPace
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx, sink) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return p
}

func recorded(dir string) (events []event.Event) {
	r, err := record.Open(context.Background(), filepath.Join(dir, "recording"))
	if err != nil {
		return nil
	}
	defer r.Close()
	for {
		e, err := r.Next()
		if err != nil {
			return events
		}
		events = append(events, e)
	}
}

func content(dir, name string) string {
	text, _ := os.ReadFile(filepath.Join(dir, name))
	return string(text)
}

func TestMain(m *testing.M) {
	nrilog.Set(stubLog{slog.New(slog.DiscardHandler)})
	switch {
	case os.Getenv(api.PluginSocketEnvVar) != "":
		pluginMain()
	case os.Getenv(runtimeDir) != "":
		runtimeMain(os.Getenv(runtimeDir))
	default:
		os.Exit(m.Run())
	}
}

// runtimeDir is set in the environment of the runtime process.
const runtimeDir = "CNISCOPE_TEST_RUNTIME"

// runtimeMain is the runtime's side of NRI. It answers a line "run ID" with "ok" when the pod has run.
func runtimeMain(dir string) {
	r, err := startRuntime(dir, pod("present"))
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		id := strings.TrimPrefix(lines.Text(), "run ")
		if err := r.run(context.Background(), pod(id)); err != nil {
			fmt.Println(err)
		}
		fmt.Println("ok")
	}
}

// pluginMain is a pre-installed plugin. It records to DIR/recording, and writes its result to DIR/ended.
func pluginMain() {
	dir := filepath.Dir(filepath.Dir(os.Args[0]))
	err := func() error {
		out, err := record.Create(filepath.Join(dir, "recording"), record.Header{}, true)
		if err != nil {
			return err
		}
		p := New(Options{
			Socket: filepath.Join(dir, "nri.sock"),
			Configure: func(text string) error {
				return os.WriteFile(filepath.Join(dir, "configured"), []byte(text), 0o600)
			},
		})
		p.pace = testPace
		return p.Run(context.Background(), func(e event.Event) {
			_ = out.Write(e)
			_ = out.Flush()
		})
	}()
	_ = os.WriteFile(filepath.Join(dir, "ended.new"), []byte(fmt.Sprint(err)), 0o600)
	_ = os.Rename(filepath.Join(dir, "ended.new"), filepath.Join(dir, "ended"))
}
