package doctor

import (
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// mayOpen says whether we may connect to a socket: asking costs less than gRPC's retries.
func mayOpen(socket string) error {
	if err := unix.Access(socket, unix.R_OK|unix.W_OK); err != nil {
		return fmt.Errorf("%s: %w", socket, err)
	}
	return nil
}

func runnable(info fs.FileInfo) bool { return info.Mode().IsRegular() && info.Mode()&0o111 != 0 }
