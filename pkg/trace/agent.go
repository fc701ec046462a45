package trace

import (
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/cniscope/cniscope/pkg/attr"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

var stateKeys = []struct {
	state event.AgentState
	key   func(time.Duration) attribute.KeyValue
}{
	{event.AgentStopped, attr.AgentStoppedMS},
	{event.AgentFrozen, attr.AgentFrozenMS},
	{event.AgentUninterruptible, attr.AgentUninterruptibleMS},
	{event.AgentRunning, attr.AgentRunningMS},
	{event.AgentWaiting, attr.AgentWaitingMS},
	{event.AgentIdle, attr.AgentIdleMS},
}

func aboutWork(work *model.Work, when model.Interval) []attribute.KeyValue {
	kvs := []attribute.KeyValue{attr.AgentCPUMS(time.Duration(work.CPU))}
	spent, in := work.Spent(when), work.Channel
	for _, f := range stateKeys {
		for _, s := range spent {
			if s.State != f.state {
				continue
			}
			if kvs = append(kvs, f.key(time.Duration(s.Time))); in == "" && s.State != event.AgentIdle {
				in = s.Channel
			}
		}
	}
	return append(kvs, nonZero(attr.AgentWaitsIn(in), attr.AgentKilled(work.Killed))...)
}

// aboutPeer describes a peer. A unix socket's path is the address (semantic conventions).
func aboutPeer(c *model.Connection) []attribute.KeyValue {
	host, port := c.Address, 0
	if i := strings.LastIndexByte(c.Address, ':'); c.Network != "unix" && i >= 0 {
		if n, err := strconv.ParseUint(c.Address[i+1:], 10, 16); err == nil {
			host, port = strings.Trim(c.Address[:i], "[]"), int(n)
		}
	}
	kvs := nonZero(
		semconv.NetworkTransportKey.String(c.Network),
		semconv.NetworkPeerAddress(host),
		semconv.ServerAddress(host),
		attr.Errno(c.Error),
	)
	if port != 0 {
		kvs = append(kvs, semconv.NetworkPeerPort(port), semconv.ServerPort(port))
	}
	if c.Tries > 1 {
		kvs = append(kvs, attr.Tries(c.Tries))
	}
	if x := c.Exchange; x != nil {
		kvs = append(kvs, nonZero(
			attr.Standing(true), attr.Unasked(x.Unasked), attr.Receipt(x.Receipt), attr.Clipped(x.Clipped),
		)...)
	}
	if c.Agent == nil {
		return kvs
	}
	return append(append(kvs, aboutActor(c.Agent)...), nonZero(attr.AgentListens(!c.Answered))...)
}

func aboutActor(a *event.Actor) []attribute.KeyValue {
	return nonZero(attr.Agent(a.Name), attr.AgentPID(int(a.PID)))
}
