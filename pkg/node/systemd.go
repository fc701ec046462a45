package node

import (
	"context"
	"log/slog"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/cniscope/cniscope/pkg/metrics"
)

// tellSystemd reports the attached probe, then liveness (/healthz) until ctx ends; without it systemd restarts the
// service after WatchdogSec=. A pre-installed plugin inherited containerd's socket, and reports nothing.
func tellSystemd(ctx context.Context, log *slog.Logger, attached <-chan struct{}, alive metrics.Check) {
	if Preinstalled() {
		return
	}
	select {
	case <-attached:
	case <-ctx.Done():
		return
	}
	if !notify(log, daemon.SdNotifyReady) {
		return
	}
	defer notify(log, daemon.SdNotifyStopping)
	feedWatchdog(ctx, log, alive)
	<-ctx.Done()
}

func notify(log *slog.Logger, state string) (asked bool) {
	asked, err := daemon.SdNotify(false, state)
	if err != nil {
		log.Warn("systemd not notified", "state", state, "error", err)
	}
	return asked
}

func feedWatchdog(ctx context.Context, log *slog.Logger, alive metrics.Check) {
	within, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn("systemd watchdog not fed", "error", err)
	}
	if within <= 0 {
		return
	}
	feed := time.NewTicker(within / 2) // as sd_watchdog_enabled(3) recommends
	defer feed.Stop()
	for {
		if report, ok := alive(); ok {
			notify(log, daemon.SdNotifyWatchdog)
		} else {
			log.Error("cniscope is stuck, systemd restarts it", "reason", report, "watchdog", within)
		}
		select {
		case <-feed.C:
		case <-ctx.Done():
			return
		}
	}
}

type startedKey struct{}

// WithStarted returns a context with which Run calls up once it observes.
func WithStarted(ctx context.Context, up func()) context.Context {
	return context.WithValue(ctx, startedKey{}, up)
}

func tellStarted(ctx context.Context) {
	if up, ok := ctx.Value(startedKey{}).(func()); ok {
		up()
	}
}
