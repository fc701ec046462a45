//go:build !linux

package install

import (
	"context"
	"errors"
	"io/fs"
	"time"
)

func ownerOf(fs.FileInfo) (uid, gid int) { return 0, 0 }

func lockTree(string, bool) (release func(), err error) {
	return nil, errors.New("cniscope is installed on Linux only")
}

func unfit(string, bool) error { return nil }

func running(context.Context, string) (int, time.Time, error) {
	return 0, time.Time{}, errNoSystemd
}

func (t tree) newer(context.Context, string, string) bool { return false }

func configOf(int) string { return "" }

func systemdRuns() bool { return false }

type systemd struct{}

var errNoSystemd = errors.New("there is no systemd on this platform")

func connectSystemd(context.Context) (*systemd, error)                  { return nil, errNoSystemd }
func (*systemd) close()                                                 {}
func (*systemd) reload(context.Context) error                           { return errNoSystemd }
func (*systemd) restart(context.Context, string) error                  { return errNoSystemd }
func (*systemd) stop(context.Context, string) error                     { return errNoSystemd }
func (*systemd) process(context.Context, string) (pid int, says string) { return 0, "" }
func (*systemd) state(context.Context, string) (active, load string, err error) {
	return "", "", errNoSystemd
}
