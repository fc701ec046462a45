package doctor

import (
	"io/fs"
	"net"
	"time"
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
