//go:build linux

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/spool"
	"github.com/cniscope/cniscope/test/harness"
)

// A restarted containerd's cniscope takes over node and spool while the previous one still sends, or was killed.
func TestTheNextOneHasTheSpool(t *testing.T) {
	harness.Root(t)
	for name, end := range map[string]syscall.Signal{"told to end": unix.SIGTERM, "killed": unix.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			h := newHandover(t)
			first := h.start(false)
			h.observes(first)
			h.has(first)
			second := h.start(true) // it waits
			harness.Check(t, first.Process.Signal(end))
			h.observes(second)
			h.has(second)
		})
	}
}

// handover is a node without a runtime, with a queue and an unavailable backend.
type handover struct {
	*testing.T
	ctx              context.Context
	dir, run, cursor string
}

func newHandover(t *testing.T) *handover {
	t.Helper()
	dir := t.TempDir()
	h := &handover{T: t, dir: dir, run: filepath.Join(dir, "run"), cursor: filepath.Join(dir, "spool", "cursor")}
	h.ctx = harness.Context(t)
	s, err := spool.Open(spool.Options{Dir: filepath.Dir(h.cursor), MaxBytes: 1 << 20, MaxAge: time.Hour})
	harness.Check(t, err)
	data := harness.Must(proto.Marshal(&tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{{
		ScopeSpans: []*tracepb.ScopeSpans{{Spans: []*tracepb.Span{{Name: "waits"}}}},
	}}}))(t)
	_, err = s.Append(spool.Operation{Start: time.Now(), End: time.Now(), Data: data})
	harness.Check(t, err)
	harness.Check(t, s.Close())
	harness.Check(t, os.WriteFile(filepath.Join(dir, "cniscope.toml"), fmt.Appendf(nil,
		"[export.otlp]\nendpoint = \"http://%s\"\n[export.spool]\ndir = %q\n[state]\ndir = %q\n[nri]\nsocket = %q\n[runtime]\nsocket = %q\n",
		harness.Address(t), filepath.Dir(h.cursor), h.run, filepath.Join(dir, "nri.sock"), filepath.Join(dir, "containerd.sock")), 0o600))
	return h
}

func (h *handover) start(preinstalled bool) *exec.Cmd {
	h.Helper()
	cmd := exec.CommandContext(h.ctx, program, "run", "--config", filepath.Join(h.dir, "cniscope.toml"))
	cmd.Env = []string{"NODE_NAME=n"}
	if preinstalled {
		ours, theirs, err := socketpair()
		harness.Check(h.T, err)
		defer theirs.Close()
		harness.Check(h.T, ours.Close()) // a runtime that does not answer
		cmd.ExtraFiles = []*os.File{theirs}
		cmd.Env = append(cmd.Env, "NRI_PLUGIN_SOCKET=3", "NRI_PLUGIN_NAME=cniscope", "NRI_PLUGIN_IDX=90")
	}
	harness.Beside(h, cmd)
	return cmd
}

func socketpair() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	return os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs"), nil
}

func (h *handover) observes(cmd *exec.Cmd) {
	h.Helper()
	for {
		n, err := control.Client{Dir: h.run}.Node(h.ctx)
		if err == nil && n.PID == cmd.Process.Pid && n.Probe == "attached" {
			return
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-h.ctx.Done():
			h.Fatalf("process %d does not observe the node: %+v, %v", cmd.Process.Pid, n, err)
		}
	}
}

func (h *handover) has(cmd *exec.Cmd) {
	h.Helper()
	harness.Eventually(h, func() error {
		files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", cmd.Process.Pid))
		if err != nil {
			return err
		}
		var open []string
		for _, f := range files {
			to, _ := os.Readlink(f) // may be closed again
			if to == h.cursor {
				return nil
			}
			open = append(open, to)
		}
		return fmt.Errorf("process %d goes without the spool: it has %s", cmd.Process.Pid, strings.Join(open, ", "))
	})
}

// A second signal stops immediately.
func TestASecondSignalEndsItAtOnce(t *testing.T) {
	harness.Root(t)
	h := newHandover(t)
	cmd := h.start(false)
	h.observes(cmd)
	harness.Check(t, cmd.Process.Signal(unix.SIGTERM))
	for { // after the first signal the socket closes
		if _, err := (control.Client{Dir: h.run}).Node(h.ctx); err != nil {
			break
		}
	}
	harness.Check(t, cmd.Process.Signal(unix.SIGTERM))
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 128+int(unix.SIGTERM) {
		t.Errorf("it ended by itself: %v", err)
	}
}
