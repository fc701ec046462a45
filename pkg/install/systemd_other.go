//go:build !linux

package install

import (
	"context"
	"errors"
)

func systemdRuns() bool { return false }

type systemd struct{}

var errNoSystemd = errors.New("there is no systemd on this platform")

func connectSystemd(context.Context) (*systemd, error) { return nil, errNoSystemd }
func (*systemd) close()                                {}
func (*systemd) reload(context.Context) error          { return errNoSystemd }
func (*systemd) restart(context.Context, string) error { return errNoSystemd }
func (*systemd) stop(context.Context, string) error    { return errNoSystemd }
func (*systemd) state(context.Context, string) (active, load string, err error) {
	return "", "", errNoSystemd
}
