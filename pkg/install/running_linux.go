package install

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/procfs"
)

// running returns who listens on a socket, and when it was started.
func running(ctx context.Context, address string) (pid int, started time.Time, err error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", address)
	if err != nil {
		return 0, started, err
	}
	defer conn.Close()
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0, started, err
	}
	var peer *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		peer, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil || failed != nil {
		return 0, started, fmt.Errorf("asking who listens on %s: %w", address, failed)
	}
	started, err = procfs.Started(int(peer.Pid))
	return int(peer.Pid), started, err
}

// configOf is the configuration that a containerd was started with; empty if nobody said.
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

// newer reports whether containerd, at address, was started before the file was written.
func (t tree) newer(ctx context.Context, path, address string) bool {
	file, err := t.file(path)
	if err != nil {
		return false
	}
	info, err := os.Stat(file)
	if err != nil {
		return false
	}
	_, started, err := running(ctx, address)
	return err == nil && info.ModTime().After(started.Add(procfs.Tick))
}
