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

// Socket is the name of the socket in the run folder.
const Socket = "control.sock"

// asRoot is what to do for who may not ask.
const asRoot = "be root"

// Address is where the cniscope whose run folder is dir answers root.
func Address(dir string) string { return filepath.Join(dir, Socket) }

// Listen makes the socket in the run folder. Whoever holds the node's lock may take away
// what a predecessor left behind.
func Listen(dir string) (net.Listener, error) {
	path := filepath.Join(dir, Socket)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	// The next one may be listening there when this one ends.
	l.SetUnlinkOnClose(false)
	if err := os.Chmod(path, 0o600); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("control socket: %w", err)
	}
	return l, nil
}

// Forget removes the socket from the run folder. Only who has the node's lock may: the next one listens
// there when it has it.
func Forget(dir string) { _ = os.Remove(filepath.Join(dir, Socket)) }

// ListenRead makes the read-only socket in a folder that holds nothing else, for root and the members of a
// group. The folder is made if it is missing, not those above it. It takes CAP_CHOWN, or a process that is a
// member of the group.
func ListenRead(folder string, group int) (net.Listener, error) {
	if err := os.Mkdir(folder, 0o750); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("read-only socket: %w", err)
	}
	path := filepath.Join(folder, ReadSocket)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read-only socket: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("read-only socket: %w", err)
	}
	l.SetUnlinkOnClose(false)
	for _, open := range []struct {
		path string
		mode fs.FileMode
	}{{folder, 0o750}, {path, 0o660}} {
		// The mode first: until the group is set, it is root's group that may.
		err := os.Chmod(open.path, open.mode)
		if err == nil {
			err = os.Chown(open.path, -1, group)
		}
		if err != nil {
			_ = l.Close()
			return nil, fmt.Errorf("read-only socket for group %d: %w; run cniscope with CAP_CHOWN, or with this group among its own (supplementalGroups, SupplementaryGroups=)", group, err)
		}
	}
	return l, nil
}

// ForgetRead removes the read-only socket from its folder, which stays: containers may have a mount of it. As
// for Forget.
func ForgetRead(folder string) { _ = os.Remove(filepath.Join(folder, ReadSocket)) }

func connect(ctx context.Context, address string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "unix", address)
}
