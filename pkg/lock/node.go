//go:build linux || windows

package lock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/private"
)

const nodeLock = "node.lock"

// Take locks the node in dir, which it creates. who describes us: "in a pod". It fails with a HeldError, or a
// *private.Error if another user could take the lock. The kernel releases it at exit; release also removes dir if Take
// created it and it is empty.
func Take(dir, who string) (release func(), err error) {
	_, err = os.Stat(dir)
	made := errors.Is(err, fs.ErrNotExist)
	var unlock func()
	for range removals {
		if unlock, err = take(dir, who); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err != nil || !made {
		return unlock, err
	}
	return func() {
		unlock()
		_ = os.Remove(dir)
	}, nil
}

// removals of dir by earlier holders, just after it was opened.
const removals = 10

func take(dir, who string) (release func(), err error) {
	root, err := private.Dir(dir)
	if err != nil {
		remedy := "set state.dir to a writable directory"
		if errors.Is(err, fs.ErrPermission) && os.Geteuid() != 0 {
			remedy = "run as root"
		}
		return nil, fmt.Errorf("cannot open the run directory: %w; %s", err, remedy)
	}
	defer root.Close()
	return In(root, nodeLock, who)
}

func held(f *os.File, path string) error {
	holder := make([]byte, 256)
	n, _ := f.Read(holder)
	return &HeldError{Holder: strings.TrimSpace(string(holder[:n])), File: path}
}

// sign describes the holder. It only informs, so errors are ignored.
func sign(f *os.File, who string) {
	if err := f.Truncate(0); err == nil {
		_, _ = fmt.Fprintf(f, "pid %d, %s, since %s\n", os.Getpid(), who, time.Now().UTC().Format(time.RFC3339))
	}
}
