package gather

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/cniscope/cniscope/pkg/anchor"
	"github.com/cniscope/cniscope/pkg/doctor/fact"
)

// nriSocket does not connect, since containerd would wait for a registration.
func nriSocket(ctx context.Context, o fact.Options) (n fact.NRI, err error) {
	if o.NRISocket == "" {
		return n, nil
	}
	info, err := os.Stat(o.NRISocket)
	if errors.Is(err, fs.ErrNotExist) {
		return n, nil
	}
	if err != nil {
		return n, fmt.Errorf("containerd's NRI socket: %w", err)
	}
	n.Socket = info.Mode()&fs.ModeSocket != 0
	// Each network namespace has its own list; containerd's counts.
	conn, err := new(net.Dialer).DialContext(ctx, "unix", o.Address)
	if err != nil {
		return n, nil //nolint:nilerr // unknown; another fact reports it
	}
	pid := anchor.Peer(conn)
	_ = conn.Close()
	table, err := os.Open(fmt.Sprintf("/proc/%d/net/unix", pid))
	if err != nil {
		return n, nil //nolint:nilerr // unknown
	}
	defer table.Close()
	n.Sure = true
	n.Listening = listens(ctx, table, o.NRISocket)
	return n, ctx.Err()
}

// listens looks for a listening socket (flag 0x10000, SO_ACCEPTCON) in /proc/net/unix: Num RefCount Protocol Flags Type
// St Inode Path. Any user can have a million sockets of any path.
func listens(ctx context.Context, table io.Reader, path string) bool {
	for lines := bufio.NewScanner(table); lines.Scan() && ctx.Err() == nil; {
		fields := strings.Fields(lines.Text())
		if len(fields) == 8 && fields[3] == "00010000" &&
			filepath.Base(fields[7]) == filepath.Base(path) && samePath(fields[7], path) {
			return true
		}
	}
	return false
}

// samePath follows links, because /var/run is a link to /run.
func samePath(a, b string) bool {
	is, errA := os.Stat(a)
	as, errB := os.Stat(b)
	return a == b || errA == nil && errB == nil && os.SameFile(is, as)
}
