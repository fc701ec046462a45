package timeline

import (
	"fmt"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

const socket = "/run/agent.sock"

// dial reports a connection or a failed attempt.
func (s *story) dial(start, end int64, process, key, errno string) *story {
	return s.at(end, &event.Connect{
		Process: event.Process(process), Start: start * ms, Socket: key, Network: "unix", Address: socket,
		Error: errno, Listener: &event.Actor{PID: 1, Name: "systemd"},
	})
}

func (s *story) serve(at int64, key string, pid uint32, name string) *story {
	return s.at(at, &event.Accept{Socket: key, Agent: event.Actor{PID: pid, Name: name}})
}

func (s *story) hangUp(at int64, process, key string) *story {
	return s.at(at, &event.Close{Process: event.Process(process), Socket: key})
}

func saidOfConnection(c *model.Connection, when model.Interval) string {
	s := fmt.Sprintf("%s %s %d-%d", c.Network, c.Address, when.Start/ms, when.End/ms)
	if c.Error != "" {
		s += fmt.Sprintf(" %s, tried %d times", c.Error, c.Tries)
	}
	switch {
	case c.Answered:
		s += " answered by " + c.Agent.Name
	case c.Agent != nil:
		s += " listens " + c.Agent.Name
	}
	return s
}

func TestConnections(t *testing.T) {
	stories{
		"from connect until close, with who answered": {
			func(s *story) { s.dial(1, 2, "b", "s1", "").serve(3, "s1", 44, "agentd").hangUp(30, "b", "s1") },
			"unix /run/agent.sock 1-30 answered by agentd",
		},
		"until the process is over; nobody is known but who listens": {
			func(s *story) { s.dial(1, 2, "b", "s1", "") },
			"unix /run/agent.sock 1-50 listens systemd",
		},
		"only who connected ends it": {
			func(s *story) { s.dial(1, 2, "b", "s1", "").hangUp(4, "x", "s1").hangUp(9, "b", "s1") },
			"unix /run/agent.sock 1-9 listens systemd",
		},
		"attempts at one address are one, until one is not refused": {
			func(s *story) {
				s.dial(1, 1, "b", "s1", "ENOENT").dial(11, 11, "b", "s2", "ECONNREFUSED").dial(21, 22, "b", "s3", "").
					hangUp(30, "b", "s3").
					dial(40, 40, "b", "s4", "ECONNREFUSED")
			},
			"unix /run/agent.sock 1-21 ECONNREFUSED, tried 2 times listens systemd\n" +
				"unix /run/agent.sock 21-30 listens systemd\n" +
				"unix /run/agent.sock 40-40 ECONNREFUSED, tried 1 times listens systemd",
		},
		"an attempt that went on by itself may be refused later": {
			func(s *story) {
				refusedLater := func(at int64, key string) {
					s.at(at, &event.Connect{Process: "b", Socket: key, Error: "ECONNREFUSED"})
				}
				s.dial(1, 1, "b", "s1", "")
				refusedLater(3, "s1")
				s.dial(11, 11, "b", "s2", "")
				refusedLater(13, "s2")
				s.dial(21, 21, "b", "s3", "").hangUp(30, "b", "s3")
			},
			"unix /run/agent.sock 1-21 ECONNREFUSED, tried 2 times listens systemd\nunix /run/agent.sock 21-30 listens systemd",
		},
		"a server may be seen to accept first": {
			func(s *story) { s.serve(1, "s1", 44, "agentd").dial(1, 2, "b", "s1", "").hangUp(9, "b", "s1") },
			"unix /run/agent.sock 1-9 answered by agentd",
		},
		"a socket that is used again is another one": {func(s *story) {
			s.dial(1, 1, "b", "s1", "").hangUp(9, "b", "s1").dial(11, 11, "b", "s1", "").serve(12, "s1", 44, "agentd").
				hangUp(19, "b", "s1")
		}, "unix /run/agent.sock 1-9 listens systemd\nunix /run/agent.sock 11-19 answered by agentd"},
	}.each(t, bridging, func(s *story) string {
		s.exit(50, "b").tick(2000).over()
		return lines(s.inside("bridge"), saidOfConnection)
	})
}

func (s *story) duplicate(at int64, process string, state event.AddressState) *story {
	return s.at(at, &event.Address{
		Process: event.Process(process), NetNS: event.Namespace{Key: "host"}, Index: 7,
		Address: "fd00::5", State: state,
	})
}

func saidOfDetection(d *model.Detection, when model.Interval) string {
	return fmt.Sprintf("%s on %s: %s %d-%d", d.Address, d.On, d.State, when.Start/ms, when.End/ms)
}

func TestDuplicateAddressDetection(t *testing.T) {
	stories{
		"from the request for the address until it may be used": {func(s *story) {
			s.ask(1, 2, "b", "RTM_NEWADDR", about(7, ""), address("fd00::5/64")).
				ask(1, 2, "b", "RTM_NEWLINK", about(7, "eth0")).
				duplicate(5, "b", event.AddressTentative).duplicate(40, "b", event.AddressReady)
		}, "fd00::5 on eth0: ready 1-40"},
		"from when it was seen, where somebody else asked": {func(s *story) {
			s.duplicate(5, "b", event.AddressTentative).duplicate(40, "b", event.AddressDuplicate)
		}, "fd00::5 on : duplicate 5-40"},
		"until the plugin is over, where that comes first": {
			func(s *story) { s.duplicate(5, "b", event.AddressTentative) },
			"fd00::5 on : tentative 5-50",
		},
		"nobody waits for what is ready": {
			func(s *story) { s.ask(1, 2, "b", "RTM_NEWADDR").duplicate(40, "b", event.AddressReady) },
			"",
		},
	}.each(t, func(t *testing.T) *story {
		return bridging(t).wait(0, 0, "b", event.WaitPoll, "futex")
	}, func(s *story) string {
		return lines(s.exit(50, "b").tick(2000).inside("bridge"), saidOfDetection)
	})
}
