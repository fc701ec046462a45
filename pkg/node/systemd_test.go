//go:build unix

package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
)

// manager is systemd as a service sees it: a socket, and the environment.
func manager(t *testing.T, watchdog time.Duration) *net.UnixConn {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	socket := harness.Must(net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"}))(t)
	t.Cleanup(func() { _ = socket.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", fmt.Sprint(watchdog.Microseconds()))
	t.Setenv("WATCHDOG_PID", fmt.Sprint(os.Getpid()))
	return socket
}

func hear(t *testing.T, socket *net.UnixConn) string {
	t.Helper()
	state := make([]byte, 64)
	n := harness.Must(socket.Read(state))(t)
	return string(state[:n])
}

func TestTheWatchdogIsFedWhileEventsAreTaken(t *testing.T) {
	socket := manager(t, 2*time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	attached := make(chan struct{})
	var fed, refused atomic.Int64
	var stuck atomic.Bool
	var told sync.WaitGroup
	told.Go(func() {
		tellSystemd(ctx, slog.New(slog.DiscardHandler), attached, func() (string, bool) {
			if stuck.Load() {
				refused.Add(1)
				return "stuck", false
			}
			fed.Add(1)
			return "ok", true
		})
	})
	if fed.Load() > 0 {
		t.Error("fed before the probe was attached")
	}
	close(attached)
	harness.Equal(t, hear(t, socket), "READY=1")
	heard := int64(0)
	for ; heard < 5; heard++ {
		harness.Equal(t, hear(t, socket), "WATCHDOG=1")
	}
	stuck.Store(true)
	for refused.Load() < 5 {
		time.Sleep(time.Millisecond)
	}
	// What was said before has arrived, and nothing was said since.
	for ; heard < fed.Load(); heard++ {
		hear(t, socket)
	}
	_ = socket.SetReadDeadline(time.Unix(1, 0))
	if n, err := socket.Read(make([]byte, 64)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("it is fed though it is stuck: %d bytes, %v", n, err)
	}
	_ = socket.SetReadDeadline(time.Time{})
	stuck.Store(false)
	harness.Equal(t, hear(t, socket), "WATCHDOG=1")
	cancel()
	told.Wait()
	for hear(t, socket) != "STOPPING=1" {
	}
}

func TestNobodyIsToldWhereNobodyAsks(t *testing.T) {
	attached := make(chan struct{})
	close(attached)
	alive := func() (string, bool) { t.Error("asked"); return "", true }
	log := slog.New(slog.NewTextHandler(t.Output(), nil))

	t.Setenv("NOTIFY_SOCKET", "")
	tellSystemd(t.Context(), log, attached, alive)

	// What containerd has started has containerd's socket.
	socket := manager(t, time.Hour)
	t.Setenv("NRI_PLUGIN_SOCKET", "3")
	tellSystemd(t.Context(), log, attached, alive)
	_ = socket.SetReadDeadline(time.Unix(1, 0))
	if _, err := socket.Read(make([]byte, 64)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("systemd hears of it: %v", err)
	}

	// A process of ours that is not the one to be watched.
	manager(t, time.Hour)
	t.Setenv("NRI_PLUGIN_SOCKET", "")
	t.Setenv("WATCHDOG_PID", "1")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tellSystemd(ctx, log, attached, alive)
}
