package install

import (
	"context"
	"fmt"

	"github.com/coreos/go-systemd/v22/dbus"
	"github.com/coreos/go-systemd/v22/util"
)

// systemdRuns reports whether this system was booted with systemd (sd_booted(3)).
func systemdRuns() bool { return util.IsRunningSystemd() }

// systemd talks to the service manager over D-Bus.
type systemd struct{ conn *dbus.Conn }

func connectSystemd(ctx context.Context) (*systemd, error) {
	conn, err := dbus.NewWithContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("talking to systemd over D-Bus: %w; is this root?", err)
	}
	return &systemd{conn}, nil
}

func (s *systemd) close() { s.conn.Close() }

// reload has systemd read its unit files again.
func (s *systemd) reload(ctx context.Context) error {
	if err := s.conn.ReloadContext(ctx); err != nil {
		return fmt.Errorf("systemctl daemon-reload: %w", err)
	}
	return nil
}

func (s *systemd) restart(ctx context.Context, unit string) error {
	return s.job(ctx, "restart", unit, s.conn.RestartUnitContext)
}

func (s *systemd) stop(ctx context.Context, unit string) error {
	return s.job(ctx, "stop", unit, s.conn.StopUnitContext)
}

// job waits until what was asked for is done.
func (s *systemd) job(ctx context.Context, verb, unit string, do func(context.Context, string, string, chan<- string) (int, error)) error {
	done := make(chan string, 1)
	if _, err := do(ctx, unit, "replace", done); err != nil {
		return fmt.Errorf("systemctl %s %s: %w", verb, unit, err)
	}
	select {
	case result := <-done:
		if result != "done" {
			return fmt.Errorf("systemctl %s %s: %s; see journalctl -u %s", verb, unit, result, unit)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("systemctl %s %s: %w", verb, unit, ctx.Err())
	}
}

// state is that of a unit as systemctl shows it, "active" or "failed", and whether it is
// "loaded", "masked" or "not-found".
func (s *systemd) state(ctx context.Context, unit string) (active, load string, err error) {
	p, err := s.conn.GetUnitPropertiesContext(ctx, unit)
	if err != nil {
		return "", "", fmt.Errorf("asking systemd for %s: %w", unit, err)
	}
	active, _ = p["ActiveState"].(string)
	load, _ = p["LoadState"].(string)
	return active, load, nil
}
