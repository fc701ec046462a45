package install

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
	"github.com/coreos/go-systemd/v22/util"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/anchor"
	"github.com/cniscope/cniscope/pkg/lock"
	"github.com/cniscope/cniscope/pkg/private"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// installLock is in a directory that only root can write to, so no other user can hold it.
const installLock = "cniscope-install.lock"

func ownerOf(info fs.FileInfo) (uid, gid int) {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(s.Uid), int(s.Gid)
	}
	return 0, 0
}

// lockTree allows one installation at a time; the kernel releases the lock at exit. A live node's lock is in /run,
// since / may be read-only.
func lockTree(path string, live bool) (release func(), err error) {
	open, dir := os.OpenRoot, path
	if live {
		open, dir = private.Dir, "/run"
	}
	root, err := open(dir)
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	defer root.Close()
	release, err = lock.In(root, installLock, "cniscope install")
	if held, is := errors.AsType[*lock.HeldError](err); is {
		return nil, fmt.Errorf("another cniscope is at work on %s (%s): try again when it is done", path, held.Holder)
	}
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return release, nil
}

func unfit(dir string, live bool) error {
	var fs unix.Statfs_t
	err := unix.Statfs(dir, &fs)
	switch {
	case err == nil && fs.Flags&unix.ST_RDONLY != 0:
		return unix.EROFS
	case err == nil && live && fs.Flags&unix.ST_NOEXEC != 0:
		return errors.New("it is mounted noexec")
	}
	return nil
}

func running(ctx context.Context, address string) (pid int, started time.Time, err error) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", address)
	if err != nil {
		return 0, started, err
	}
	defer conn.Close()
	pid = anchor.Peer(conn)
	started, err = procfs.Started(pid)
	return pid, started.UTC(), err
}

func configOf(pid int) string {
	line, err := procfs.NewMemory().Arguments(pid)
	if err != nil {
		return ""
	}
	for i, arg := range line {
		name, value, inOne := strings.Cut(arg, "=")
		if name != "--config" && name != "-config" && name != "-c" {
			continue
		}
		if !inOne && i+1 < len(line) {
			value = line[i+1]
		}
		if filepath.IsAbs(value) {
			return value
		}
	}
	return ""
}

func (t tree) newer(ctx context.Context, path, address string) bool {
	file, err := t.file(path)
	if err != nil {
		return false
	}
	info, err := t.disk.Stat(file)
	if err != nil {
		return false
	}
	_, started, err := running(ctx, address)
	return err == nil && info.ModTime().After(started.Add(procfs.Tick))
}

// systemdRuns reports whether systemd booted this system (sd_booted(3)).
func systemdRuns() bool { return util.IsRunningSystemd() }

type systemd struct{ conn *dbus.Conn }

func connectSystemd(ctx context.Context) (*systemd, error) {
	conn, err := dbus.NewWithContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to systemd over D-Bus: %w; run as root", err)
	}
	return &systemd{conn}, nil
}

func (s *systemd) close() { s.conn.Close() }

func (s *systemd) reload(ctx context.Context) error {
	if err := s.conn.ReloadContext(ctx); err != nil {
		return fmt.Errorf("systemctl daemon-reload: %w", err)
	}
	return nil
}

func (s *systemd) restart(ctx context.Context, unit string) error {
	return s.job(ctx, "restart", unit, s.conn.RestartUnitContext)
}

func (s *systemd) stop(ctx context.Context, unit string) error {
	return s.job(ctx, "stop", unit, s.conn.StopUnitContext)
}

func (s *systemd) job(
	ctx context.Context, verb, unit string,
	do func(context.Context, string, string, chan<- string) (int, error),
) error {
	done := make(chan string, 1)
	if _, err := do(ctx, unit, "replace", done); err != nil {
		return fmt.Errorf("systemctl %s %s: %w", verb, unit, err)
	}
	select {
	case result := <-done:
		if result != "done" {
			return fmt.Errorf("systemctl %s %s: %s; see journalctl -u %s", verb, unit, result, unit)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("systemctl %s %s: %w", verb, unit, ctx.Err())
	}
}

func (s *systemd) process(ctx context.Context, unit string) (pid int, says string) {
	if p, err := s.conn.GetServicePropertyContext(ctx, unit, "MainPID"); err == nil {
		n, _ := p.Value.Value().(uint32)
		pid = int(n)
	}
	if p, err := s.conn.GetServicePropertyContext(ctx, unit, "StatusText"); err == nil {
		says, _ = p.Value.Value().(string)
	}
	return pid, says
}

func (s *systemd) state(ctx context.Context, unit string) (active, load string, err error) {
	p, err := s.conn.GetUnitPropertiesContext(ctx, unit)
	if err != nil {
		return "", "", fmt.Errorf("cannot read %s from systemd: %w", unit, err)
	}
	active, _ = p["ActiveState"].(string)
	load, _ = p["LoadState"].(string)
	return active, load, nil
}
