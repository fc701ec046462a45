//go:build linux || windows

package lock

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/private"
)

const nodeLock = "node.lock"

// Take acquires the lock of the node in dir, which it creates if needed. who describes this process in the file: "in
// a pod". It fails with a HeldError if another cniscope holds the lock, and with a *private.Error if another user
// could. The kernel releases the lock at the exit.
func Take(dir, who string) (release func(), err error) {
	root, err := private.Dir(dir)
	if err != nil {
		return nil, fmt.Errorf("the run folder: %w (set state.dir to a folder that can be written)", err)
	}
	defer root.Close()
	return In(root, nodeLock, who)
}

func held(f *os.File, path string) error {
	holder := make([]byte, 256)
	n, _ := f.Read(holder)
	return &HeldError{Holder: strings.TrimSpace(string(holder[:n])), File: path}
}

// sign describes the holder in the file. It is informative, so errors are ignored.
func sign(f *os.File, who string) {
	if err := f.Truncate(0); err == nil {
		_, _ = fmt.Fprintf(f, "pid %d, %s, since %s\n", os.Getpid(), who, time.Now().UTC().Format(time.RFC3339))
	}
}
