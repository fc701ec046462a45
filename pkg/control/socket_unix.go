//go:build !windows

package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
)

// Socket is in the run directory.
const Socket = "control.sock"

const asRoot = "run as root"

// Address returns a run directory's socket.
func Address(dir string) string { return filepath.Join(dir, Socket) }

// Listen creates the socket. The caller holds the node's lock, so an old one is stale.
func Listen(dir string) (net.Listener, error) {
	l, err := listen(filepath.Join(dir, Socket))
	if err == nil {
		if err = os.Chmod(filepath.Join(dir, Socket), 0o600); err == nil {
			return l, nil
		}
		_ = l.Close()
	}
	return nil, fmt.Errorf("control socket: %w", err)
}

// listen keeps the socket on close: the next cniscope may already listen there.
func listen(path string) (*net.UnixListener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err == nil {
		l.SetUnlinkOnClose(false)
	}
	return l, err
}

// Forget removes a directory's control socket.
func Forget(dir string) { _ = os.Remove(filepath.Join(dir, Socket)) }

// ListenRead creates a group's socket and directory. It needs CAP_CHOWN or membership in the group.
func ListenRead(folder string, group int) (net.Listener, error) {
	if err := os.Mkdir(folder, 0o750); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("read-only socket: %w", err)
	}
	path := filepath.Join(folder, ReadSocket)
	l, err := listen(path)
	if err != nil {
		return nil, fmt.Errorf("read-only socket: %w", err)
	}
	for _, open := range []struct {
		path string
		mode fs.FileMode
	}{{folder, 0o750}, {path, 0o660}} {
		// Mode before owner: until chown the group is root's.
		err := os.Chmod(open.path, open.mode)
		if err == nil {
			err = os.Chown(open.path, -1, group)
		}
		if err != nil {
			_ = l.Close()
			return nil, fmt.Errorf("read-only socket for group %d: %w; run cniscope with CAP_CHOWN, or with this group among "+
				"its own (supplementalGroups, SupplementaryGroups=)", group, err)
		}
	}
	return l, nil
}

// ForgetRead removes the socket, but not the directory, which may be mounted.
func ForgetRead(folder string) { _ = os.Remove(filepath.Join(folder, ReadSocket)) }

func connect(ctx context.Context, address string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "unix", address)
}
