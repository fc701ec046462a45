package config

import (
	"context"
	"net/netip"
	"time"
)

// Relay is the receiver for containerd's own spans.
type Relay struct {
	// Listen is an IP of loopback and a port; empty where nothing is received.
	Listen string
	// Upstream is where the spans go on to, written as OTLP.Endpoint; empty where they go
	// there.
	Upstream string
	// Wait is how long an operation that is over waits for the spans.
	Wait time.Duration
	// Queue is how many bytes may wait for the upstream.
	Queue int64
}

// RelayUpstream is the destination of relayed spans: as [export.otlp] says, but for the
// endpoint if there is another.
func (o Options) RelayUpstream() OTLP {
	upstream := o.Export.OTLP
	if o.Relay.Upstream != "" {
		upstream.Endpoint = o.Relay.Upstream
	}
	return upstream
}

const loopRemedy = "name the real endpoint in relay.upstream or export.otlp.endpoint"

// relayLoop finds a relay that would send to itself, and the option to blame.
func (o Options) relayLoop(has func(string) bool) (string, *fault) {
	// Nobody is asked for names here: Warnings does, and the relay when it dials.
	known, cancel := context.WithCancel(context.Background())
	cancel()
	if !o.RelayUpstream().leadsTo(known, o.Relay.Listen) {
		return "", nil
	}
	for _, key := range []string{"relay.upstream", "export.otlp.endpoint", "relay.listen"} {
		if has(key) {
			return key, wrong(loopRemedy, "the relay would send to itself")
		}
	}
	return "", nil
}

// loopback is a port of this node that nobody else can reach.
func loopback() kind[string] {
	return words(func(s string) *fault {
		if s == "" {
			return nil
		}
		a, err := netip.ParseAddrPort(s)
		if err != nil || a.Port() == 0 {
			return wrong(`write "127.0.0.1:4319"`, "%s is not an IP and a port", quoted(s))
		}
		if !a.Addr().IsLoopback() {
			return wrong(`write "127.0.0.1:4319"`, "%s can be reached by others", quoted(s))
		}
		return nil
	})
}
