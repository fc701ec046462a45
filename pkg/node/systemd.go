package node

import (
	"context"
	"log/slog"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/cniscope/cniscope/pkg/metrics"
)

// tellSystemd reports to systemd that the probe is attached, and then, until ctx ends, that cniscope is alive, by the
// check of /healthz. If it is not, systemd restarts it after WatchdogSec=. A pre-installed plugin inherited
// containerd's socket, and reports nothing.
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
		return // not started by systemd
	}
	defer notify(log, daemon.SdNotifyStopping)
	feedWatchdog(ctx, log, alive)
	<-ctx.Done()
}

// notify reports a state to systemd. asked is false if systemd did not start this process.
func notify(log *slog.Logger, state string) (asked bool) {
	asked, err := daemon.SdNotify(false, state)
	if err != nil {
		log.Warn("systemd not notified", "state", state, "error", err)
	}
	return asked
}

// feedWatchdog feeds systemd's watchdog, if there is one, until ctx ends. While alive is false it does not.
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
			log.Error("cniscope is stuck, systemd will start it again", "because", report, "watchdog", within)
		}
		select {
		case <-feed.C:
		case <-ctx.Done():
			return
		}
	}
}
