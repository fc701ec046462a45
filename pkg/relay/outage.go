package relay

import "log/slog"

// outage says that the upstream is gone, at the second failure in a row (one alone is an
// ordinary restart), and when it is back.
type outage struct {
	log      *slog.Logger
	failures int
	lost     uint64
}

func (o *outage) note(err error, s Forwarding) {
	if again(err) {
		if o.failures++; o.failures == 1 {
			o.lost = s.Lost()
		}
		if o.failures == 2 {
			o.log.Warn("containerd's spans cannot be relayed now, they wait", "waiting", s.Waiting, "error", s.LastError)
		}
		return
	}
	if o.failures >= 2 {
		o.log.Info("containerd's spans are relayed again", "dropped", s.Lost()-o.lost)
	}
	o.failures = 0
}
