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
	say := func(state string) bool {
		asked, err := daemon.SdNotify(false, state)
		if err != nil {
			log.Warn("systemd is not told", "state", state, "error", err)
		}
		return asked
	}
	select {
	case <-attached:
	case <-ctx.Done():
		return
	}
	if !say(daemon.SdNotifyReady) {
		return // not started by systemd
	}
	defer say(daemon.SdNotifyStopping)
	within, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn("the watchdog of systemd is not fed", "error", err)
	}
	if within <= 0 {
		<-ctx.Done()
		return
	}
	feed := time.NewTicker(within / 2) // as sd_watchdog_enabled(3) recommends
	defer feed.Stop()
	for {
		if report, ok := alive(); ok {
			say(daemon.SdNotifyWatchdog)
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
