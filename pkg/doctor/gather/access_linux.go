package gather

import (
	"io/fs"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// reach says why nobody answers on a socket, or why we may not ask: gRPC would try again
// and again first, and say it in more words.
func reach(socket string, patience time.Duration) error {
	conn, err := net.DialTimeout("unix", socket, patience)
	if err != nil {
		return err
	}
	return conn.Close()
}

func runnable(info fs.FileInfo) bool { return info.Mode().IsRegular() && info.Mode()&0o111 != 0 }

// openLog opens what kubelet made: no link, and nothing that could block.
func openLog(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
}
