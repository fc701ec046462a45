package trace

import (
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/cniscope/cniscope/pkg/timeline"
)

// aboutPeer is who was called. network.* as semantic conventions say: of a unix socket the
// address is its path.
func aboutPeer(c *timeline.Connection) []attribute.KeyValue {
	host, port := c.Address, 0
	if i := strings.LastIndexByte(c.Address, ':'); c.Network != "unix" && i >= 0 {
		if n, err := strconv.ParseUint(c.Address[i+1:], 10, 16); err == nil {
			host, port = strings.Trim(c.Address[:i], "[]"), int(n)
		}
	}
	kvs := nonEmpty(
		attribute.String(string(semconv.NetworkTransportKey), c.Network),
		semconv.NetworkPeerAddress(host),
		semconv.ServerAddress(host),
		attribute.String(string(semconv.ErrorTypeKey), c.Error),
	)
	if port != 0 {
		kvs = append(kvs, semconv.NetworkPeerPort(port), semconv.ServerPort(port))
	}
	if c.Tries > 1 {
		kvs = append(kvs, attribute.Int("cniscope.tries", c.Tries))
	}
	if c.Server == nil {
		return kvs
	}
	kvs = append(kvs, nonEmpty(attribute.String("cniscope.agent", c.Server.Name))...)
	if c.Server.PID != 0 {
		kvs = append(kvs, attribute.Int("cniscope.agent_pid", int(c.Server.PID)))
	}
	if !c.Answered {
		kvs = append(kvs, attribute.Bool("cniscope.agent_listens", true))
	}
	return kvs
}
