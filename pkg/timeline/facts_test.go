package timeline

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/test/harness"
)

// A halt is from the middle between two samples to the middle between two others, or to the process's end.
func TestHalts(t *testing.T) {
	halt := func(s *story, at, since int64, state event.AgentState, by string) {
		s.at(at, &event.Agent{Process: "b", State: state, By: by, Since: since * ms})
	}
	s := tell(t).plugin(0, "b", "ADD", "bridge")
	halt(s, 100, 50, event.AgentStopped, "")
	halt(s, 150, 100, event.AgentStopped, "")
	halt(s, 200, 150, event.AgentFrozen, "/f")
	halt(s, 250, 200, event.AgentRunning, "")
	halt(s, 400, 300, event.AgentStopped, "")
	got := lines(s.exit(500, "b").tick(2000).inside("bridge"), func(h *model.Halt, when model.Interval) string {
		return fmt.Sprintf("%s %d-%d %s", h.State, when.Start/ms, when.End/ms, h.By)
	})
	harness.Equal(t, got, "stopped 75-175 \nfrozen 175-225 /f\nstopped 350-500 ")
}

func (s *story) misses(start, end int64, process, path, errno string, count uint64) *story {
	return s.at(end, &event.Missing{Process: event.Process(process), Start: start * ms, Name: "openat", Path: path, Error: errno, Count: count})
}

// Reports of one path and error are one fact, of the process that polls; of a lock file, of the whole run.
func TestPolledFiles(t *testing.T) {
	stories{
		"reports of a file are one fact": {func(s *story) {
			s.misses(5, 100, "b", "/run/a", "ENOENT", 3).misses(5, 200, "b", "/run/a", "ENOENT", 7).misses(6, 150, "b", "/run/c", "ENOENT", 2)
		}, "bridge: /run/a ENOENT 5-200 7; bridge: /run/c ENOENT 6-150 2"},
		"another error is another fact": {func(s *story) {
			s.misses(5, 100, "b", "/run/a", "ENOENT", 3).misses(100, 200, "b", "/run/a", "EACCES", 7)
		}, "bridge: /run/a ENOENT 5-100 3; bridge: /run/a EACCES 100-200 7"},
		"a late report does not shorten it": {func(s *story) {
			s.misses(5, 200, "b", "/run/a", "ENOENT", 7).misses(5, 200, "b", "/run/a", "ENOENT", 8)
		}, "bridge: /run/a ENOENT 5-200 8"},
		"a command's file is the command's": {func(s *story) {
			s.command(10, "x", "b", "cat").misses(11, 100, "x", "/run/a", "ENOENT", 3).exit(110, "x")
		}, "cat: /run/a ENOENT 11-100 3"},
		"a lock file is the run's, whichever command tries": {func(s *story) {
			s.command(10, "x", "b", "mkdir").misses(11, 100, "x", "/run/a", "EEXIST", 3).exit(110, "x").
				command(120, "y", "b", "mkdir").misses(11, 200, "y", "/run/a", "EEXIST", 7).exit(210, "y")
		}, "bridge: /run/a EEXIST 11-200 7"},
		"of an agent's work it is the work's": {func(s *story) {
			s.calls(2, "b", "s1").command(10, "x", "a", "mkdir", mentions("c1")).misses(11, 100, "x", "/run/a", "EEXIST", 3).exit(110, "x")
		}, "mkdir: /run/a EEXIST 11-100 3"},
		"without room it is counted": {
			func(s *story) {
				for i := range 20 {
					s.misses(5, 100, "b", "/run/p"+strings.Repeat("/.", i), "ENOENT", 1)
				}
			},
			strings.Repeat("bridge: /run/p ENOENT 5-100 1; ", 16) + "4 cut",
		},
		"the state of a lock file is its call's": {func(s *story) {
			s.misses(5, 100, "b", "/run/a", "EEXIST", 3).misses(5, 100, "b", "/run/c", "ENOENT", 3).
				at(110, &event.LockFile{Path: "/run/a", Written: 1}).at(120, &event.LockFile{Path: "/run/a", Written: 2}).
				at(120, &event.LockFile{Path: "/run/c", Written: 3}).at(120, &event.LockFile{Path: "/run/d", Written: 4})
		}, "bridge: /run/a EEXIST 5-100 3; bridge: /run/c ENOENT 5-100 3; lock file /run/a of 2"},
	}.each(t, bridging, func(s *story) string {
		s.exit(500, "b").tick(20_000).end()
		var got, locks []string
		for _, op := range s.closed {
			everyImage(op, func(im *model.Image) {
				for f, m := range model.Each[*model.Missing](im.Facts) {
					got = append(got, fmt.Sprintf("%s: %s %s %d-%d %d", im.Name, path.Clean(m.Path), m.Error, f.When.Start/ms, f.When.End/ms, m.Count))
				}
			})
			for file, l := range op.Calls[0].LockFiles {
				locks = append(locks, fmt.Sprintf("lock file %s of %d", file, l.Written))
			}
			if cut := op.Calls[0].Cut["polled files"]; cut > 0 {
				locks = append(locks, fmt.Sprint(cut, " cut"))
			}
		}
		return strings.Join(append(got, locks...), "; ")
	})
}

// A call stores the state of eight lock files.
func TestLockFilesAreBounded(t *testing.T) {
	s := bridging(t)
	for i := range 10 {
		file := fmt.Sprint("/run/", i)
		s.misses(5, 100, "b", file, "EEXIST", 3).at(110, &event.LockFile{Path: file})
	}
	var kept []string
	for file := range s.exit(500, "b").tick(20_000).closed[0].Calls[0].LockFiles {
		kept = append(kept, file)
	}
	slices.Sort(kept)
	harness.Equal(t, strings.Join(kept, " "), "/run/0 /run/1 /run/2 /run/3 /run/4 /run/5 /run/6 /run/7")
}

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
