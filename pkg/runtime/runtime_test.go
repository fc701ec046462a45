//go:build linux

package runtime

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	versionapi "github.com/containerd/containerd/api/services/version/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

type service struct {
	versionapi.UnimplementedVersionServer
	version string
	err     error
}

func (s service) Version(context.Context, *emptypb.Empty) (*versionapi.VersionResponse, error) {
	return &versionapi.VersionResponse{Version: s.version}, s.err
}

func serve(t *testing.T, address string, s service) *grpc.Server {
	t.Helper()
	l := harness.Must(net.Listen("unix", address))(t)
	server := grpc.NewServer()
	versionapi.RegisterVersionServer(server, s)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	return server
}

type seen struct {
	mu  sync.Mutex
	all []string
}

func (s *seen) sink(e event.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch body := e.Body.(type) {
	case *event.Runtime:
		s.all = append(s.all, body.Name+" "+body.Version)
	case *event.Degraded:
		s.all = append(s.all, fmt.Sprintf("%s restored %v", body.Feature, body.Restored))
	}
}

func (s *seen) eventually(t *testing.T, want ...string) {
	t.Helper()
	harness.Eventually(t, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		switch {
		case slices.Equal(s.all, want):
			return nil
		case len(s.all) > len(want):
			t.Fatalf("told %q, want %q", s.all, want)
		}
		return fmt.Errorf("told %q, want %q", s.all, want)
	})
}

func run(t *testing.T, s *Source) *seen {
	t.Helper()
	told := new(seen)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, told.sink) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return told
}

func TestVersionIsToldWhenItChanges(t *testing.T) {
	address := filepath.Join(t.TempDir(), "containerd.sock")
	told := run(t, New(Options{Address: address, Interval: 5 * time.Millisecond}))
	want := []string{"runtime version restored false"}
	told.eventually(t, want...)

	server := serve(t, address, service{version: "v1.7.35\x1b[0m"})
	want = append(want, "runtime version restored true", `containerd v1.7.35\x1b[0m`)
	told.eventually(t, want...)
	server.Stop()
	want = append(want, want[0])
	told.eventually(t, want...)

	serve(t, address, service{version: "v2.4.2"})
	want = append(want, want[1], "containerd v2.4.2")
	told.eventually(t, want...)
}

// A container does not have containerd's socket.
func TestVersionThatNRITells(t *testing.T) {
	address := filepath.Join(t.TempDir(), "containerd.sock")
	s := New(Options{Address: address})
	s.Tell("containerd", "")
	s.Tell("containerd", "v2.4.1")
	s.Tell("containerd", "v2.4.2") // no reader yet: the last one counts
	told := run(t, s)
	want := []string{"containerd v2.4.2"}
	told.eventually(t, want...)
	s.Tell("containerd", "v2.4.2") // nothing new
	s.Tell("cri-o", "1.40.0")
	want = append(want, "cri-o 1.40.0")
	told.eventually(t, want...)
}

func TestSilentRuntimeEndsWithTheContext(t *testing.T) {
	address := filepath.Join(t.TempDir(), "containerd.sock")
	l := harness.Must(net.Listen("unix", address))(t)
	defer l.Close()
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		if c, err := l.Accept(); err == nil {
			defer c.Close()
			cancel()
			<-ctx.Done()
		}
	}()
	harness.Check(t, New(Options{Address: address}).Run(ctx, func(e event.Event) { t.Errorf("told %+v", e.Body) }))
}

func TestDelay(t *testing.T) {
	tests := map[string]struct {
		failures int
		random   float64
		want     time.Duration
	}{
		"in peace, at least": {0, 0, 27 * time.Second},
		"in peace, at most":  {0, 1, 33 * time.Second},
		"first failure":      {1, 0.5, time.Second},
		"fourth failure":     {4, 0.5, 8 * time.Second},
		"down for long":      {1000, 0.5, 30 * time.Second},
	}
	for name, test := range tests {
		if got := delay(defaultInterval, test.failures, test.random); got.Round(time.Millisecond) != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

func TestRemedy(t *testing.T) {
	for says, err := range map[string]error{
		"start the runtime, or set": fmt.Errorf("stat: %w", fs.ErrNotExist),
		"run cniscope as root":      fmt.Errorf("dial: %w", fs.ErrPermission),
		`unknown \x1b[31m`:          errors.New("unknown \x1b[31m"),
	} {
		if got := remedy(err, "/run/x.sock"); !strings.Contains(got, says) || !strings.Contains(got, "/run/x.sock") {
			t.Errorf("%q does not say %q", got, says)
		}
	}
}
