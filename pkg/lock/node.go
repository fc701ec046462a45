//go:build linux || windows

package lock

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/private"
)

// nodeLock is the file that stands for the node, in a folder to which nobody else may write.
const nodeLock = "node.lock"

// Take takes the lock of the node in dir, which is made if it is missing; who is what others are
// told of this process, as "in a pod". It fails with a HeldError if another cniscope has the lock,
// and with a *private.Error where others could take it. The kernel frees it when the process ends,
// however that ends.
func Take(dir, who string) (release func(), err error) {
	root, err := private.Dir(dir)
	if err != nil {
		return nil, fmt.Errorf("the run folder: %w (set state.dir to a folder that can be written)", err)
	}
	defer root.Close()
	return In(root, nodeLock, who)
}

// held is the error where another process has a lock, which wrote into the file who it is.
func held(f *os.File, path string) error {
	holder := make([]byte, 256)
	n, _ := f.Read(holder)
	return &HeldError{Holder: strings.TrimSpace(string(holder[:n])), File: path}
}

// sign writes who has the lock. Who reads it wants to know; that it cannot be written is no reason to stop.
func sign(f *os.File, who string) {
	if err := f.Truncate(0); err == nil {
		_, _ = fmt.Fprintf(f, "pid %d, %s, since %s\n", os.Getpid(), who, time.Now().UTC().Format(time.RFC3339))
	}
}
