package node

import (
	"log/slog"

	"github.com/cniscope/cniscope/pkg/anchor"
	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/node/destinations"
	"github.com/cniscope/cniscope/pkg/relay"
)

func newRelay(o config.Options, anchors *anchor.Set, log *slog.Logger) (*relay.Relay, error) {
	if o.Relay.Listen == "" {
		return nil, nil
	}
	upstream, err := destinations.Endpoint(o.RelayUpstream())
	if err != nil {
		return nil, err
	}
	r, err := relay.New(relay.Options{Listen: o.Relay.Listen, Bytes: int(o.Relay.Queue), Runtime: anchors.PIDs, Log: log})
	if err != nil {
		return nil, err
	}
	if upstream == nil {
		log.Warn("no upstream for containerd's spans", "remedy", "set relay.upstream or export.otlp.endpoint",
			"listen", o.Relay.Listen)
	}
	return r, r.SetUpstream(upstream)
}
