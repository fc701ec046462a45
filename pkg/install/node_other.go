//go:build !linux

package install

import (
	"context"
	"errors"
	"io/fs"
	"time"
)

func ownerOf(fs.FileInfo) (uid, gid int) { return 0, 0 }

// lockTree fails: installation needs Linux.
func lockTree(string, bool) (release func(), err error) {
	return nil, errors.New("cniscope is installed on Linux only")
}

func unfit(string, bool) error { return nil }

func running(context.Context, string) (int, time.Time, error) {
	return 0, time.Time{}, errors.ErrUnsupported
}

func (t tree) newer(context.Context, string, string) bool { return false }

func configOf(int) string { return "" }
