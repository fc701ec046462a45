package trace

import (
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/cniscope/cniscope/pkg/attr"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/timeline"
)

// aboutAttribution is the evidence that an agent did something for this call; none if the
// plugin itself did it.
func aboutAttribution(a *timeline.Attribution) []attribute.KeyValue {
	if a == nil {
		return nil
	}
	return append(
		[]attribute.KeyValue{attr.Attribution(string(a.Evidence))},
		nonZero(attr.Periodic(a.Periodic), attr.OtherCalls(len(a.Others)))...)
}

func aboutSetting(set *timeline.Setting) []attribute.KeyValue {
	return nonZero(
		attr.SysctlKey(set.Key),
		attr.SysctlValue(set.Value),
		attr.Errno(set.Error),
		attr.NetNSInode(set.NetNS.Label),
	)
}

func aboutLock(wait *timeline.Wait) []attribute.KeyValue {
	kvs := nonZero(attr.LockPath(wait.Path))
	if wait.Kind == event.WaitMutex {
		kvs = nonZero(attr.LockName(wait.Name))
	}
	if wait.Tries > 1 {
		kvs = append(kvs, attr.LockTries(wait.Tries))
	}
	kvs = append(kvs, nonZero(attr.LockPassed(wait.Passed))...)
	if h := wait.Holder; h != nil {
		kvs = append(kvs, nonZero(
			attr.LockHolderName(h.Name),
			attr.LockHolderParent(h.Parent),
			attr.LockHolderPID(int(h.PID)),
		)...)
		if wait.Kind == event.WaitLock {
			kvs = append(kvs,
				attr.LockHolderAgeMS(time.Duration(wait.HolderAge)),
				attr.LockHolderAgeExact(wait.AgeExact))
		}
	}
	return append(kvs, nonZero(attr.Errno(wait.Error))...)
}

func aboutDetection(d *timeline.Detection) []attribute.KeyValue {
	return nonZero(
		attr.Address(d.Address),
		attr.AddressState(string(d.State)),
		semconv.NetworkInterfaceNameKey.String(d.On),
		attr.NetNSInode(d.NetNS.Label),
	)
}

// aboutWork is the load of an agent while it was called.
func aboutWork(work *timeline.Work) []attribute.KeyValue {
	return append([]attribute.KeyValue{attr.AgentCPUMS(time.Duration(work.CPU))}, nonZero(attr.AgentWaitsIn(work.Channel))...)
}

// aboutPeer is the agent that was called. By the semantic conventions the address of a unix
// socket is its path.
func aboutPeer(c *timeline.Connection) []attribute.KeyValue {
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
	if c.Agent == nil {
		return kvs
	}
	return append(kvs, nonZero(
		attr.Agent(c.Agent.Name),
		attr.AgentPID(int(c.Agent.PID)),
		attr.AgentListens(!c.Answered),
	)...)
}
