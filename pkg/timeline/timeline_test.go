package timeline

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
)

func TestStories(t *testing.T) {
	stories{
		"a chain is one call; delegates and commands lie under who forked them": {func(s *story) {
			s.plugin(0, "b", "ADD", "bridge").command(2, "hl", "b", "host-local", delegate).exit(4, "hl").
				command(5, "i", "b", "iptables").exit(7, "i", 1).exit(8, "b").
				plugin(10, "p", "ADD", "portmap").exit(12, "p").tick(500).tick(1012)
		}, `setup c1 0-12: settled
  ADD eth0 0-12: bridge ADD 0-8 [host-local ADD 2-4, iptables 5-7 (exit 1)], portmap ADD 10-12`},
		"lo and eth0 overlap and stay two calls": {func(s *story) {
			s.plugin(0, "l", "ADD", "loopback", on("lo")).plugin(1, "b", "ADD", "bridge").exit(3, "l").exit(8, "b").tick(2000)
		}, `setup c1 0-8: settled
  ADD lo 0-3 network cni-loopback: loopback ADD 0-3
  ADD eth0 1-8: bridge ADD 1-8`},
		"exec replaces: one process, two images, side by side": {func(s *story) {
			s.plugin(0, "b", "ADD", "bridge").command(1, "x", "b", "sh").image(3, "x", "b", "iptables").exit(6, "x").
				exit(9, "b").tick(2000)
		}, `setup c1 0-9: settled
  ADD eth0 0-9: bridge ADD 0-9 [sh 1-3 (replaced), iptables 3-6]`},
		"a wrapper that execs the real plugin stays the run": {func(s *story) {
			same := func(e *event.Exec) { delegate(e); e.Stdin = "pipe-b" }
			s.plugin(0, "b", "ADD", "wrapped").image(2, "b", "cd", "real", same).exit(6, "b").tick(2000)
		}, `setup c1 0-6: settled
  ADD eth0 0-6: wrapped ADD 0-6 [real 2-6]`},
		"a subshell has no image; what it runs lies under the image that forked it": {func(s *story) {
			s.plugin(0, "b", "ADD", "shell").at(1, &event.Fork{Process: "sub", Parent: "b"}).
				command(2, "x", "sub", "sleep").exit(4, "x").exit(5, "sub").exit(6, "b").tick(2000)
		}, `setup c1 0-6: settled
  ADD eth0 0-6: shell ADD 0-6 [sleep 2-4]`},
		"a daemon left behind is marked and holds nothing open": {func(s *story) {
			s.plugin(0, "b", "ADD", "dhcp").command(1, "d", "b", "daemon").command(2, "e", "b", "helper").
				exit(3, "b").exit(5, "e").tick(2000).exit(9000, "d")
		}, `setup c1 0-3: settled
  ADD eth0 0-3: dhcp ADD 0-3 [daemon 1-3 (outlived) (unfinished), helper 2-5 (outlived)]`},
		"an end that was not seen makes it partial": {func(s *story) {
			s.plugin(0, "b", "ADD", "bridge").at(8, &event.Exit{Process: "b", Unseen: true}).tick(2000)
		}, `setup c1 0-8: settled; partial: the end of a process was not seen
  ADD eth0 0-8: bridge ADD 0-8`},
		"also one whose program began after that": {func(s *story) {
			s.plugin(0, "b", "ADD", "dhcp").at(1, &event.Fork{Process: "d", Parent: "b"}).exit(3, "b").
				image(4, "d", "b", "daemon").exit(5, "d").tick(2000)
		}, `setup c1 0-3: settled
  ADD eth0 0-3: dhcp ADD 0-3 [daemon 4-5 (outlived)]`},
		"what began before NRI spoke is part of it, though it is told later": {func(s *story) {
			s.plugin(0, "b", "ADD", "bridge").at(60, &event.Sandbox{Phase: event.SandboxRunning, ID: "c1"}).
				exit(8, "b").plugin(9, "p", "ADD", "portmap").exit(20, "p").tick(61)
		}, `setup c1 0-20: sandbox running
  ADD eth0 0-20: bridge ADD 0-8, portmap ADD 9-20`},
		"NRI ends the wait of that sandbox, once what came before it has been read": {func(s *story) {
			s.plugin(0, "b", "ADD", "bridge").plugin(0, "c", "ADD", "bridge", for2).exit(8, "b").exit(8, "c").
				at(60, &event.Sandbox{Phase: event.SandboxRunning, ID: "c1"}).tick(59).tick(61).tick(30_000)
		}, `setup c1 0-8: sandbox running
  ADD eth0 0-8: bridge ADD 0-8
setup c2 0-8: settled
  ADD eth0 0-8: bridge ADD 0-8`},
		"what NRI says may come before older events of the kernel": {func(s *story) {
			s.plugin(0, "b", "ADD", "bridge").exit(8, "b").at(60, &event.Sandbox{Phase: event.SandboxRunning, ID: "c1"}).
				plugin(10, "p", "ADD", "portmap").exit(12, "p").tick(59).tick(61)
		}, `setup c1 0-12: sandbox running
  ADD eth0 0-12: bridge ADD 0-8, portmap ADD 10-12`},
		"what NRI says may come before all of them": {func(s *story) {
			s.at(60, &event.Sandbox{Phase: event.SandboxRunning, ID: "c1"}).
				plugin(0, "b", "ADD", "bridge").exit(8, "b").plugin(10, "p", "ADD", "portmap").exit(12, "p").tick(59).tick(61)
		}, `setup c1 0-12: sandbox running
  ADD eth0 0-12: bridge ADD 0-8, portmap ADD 10-12`},
		"a DEL ends the setup before it; its second call has an empty netns": {func(s *story) {
			s.plugin(0, "b", "ADD", "bridge").exit(8, "b", 1).
				plugin(10, "d", "DEL", "bridge").exit(12, "d").
				plugin(15, "e", "DEL", "bridge", netns("")).exit(16, "e").tick(3000)
		}, `setup c1 0-8: next operation
  ADD eth0 0-8: bridge ADD 0-8 (exit 1)
teardown c1 10-16: settled
  DEL eth0 10-12: bridge DEL 10-12
  DEL eth0 15-16: bridge DEL 15-16`},
		"the chain's rest that never ran is named": {func(s *story) {
			s.at(0, bridged("bridge", "portmap", "firewall")).
				plugin(1, "b", "ADD", "bridge").exit(8, "b").plugin(9, "p", "ADD", "portmap").exit(10, "p", 1).tick(2000)
		}, `setup c1 1-10: settled
  ADD eth0 1-10 network pods never run: firewall: bridge ADD 1-8, portmap ADD 9-10 (exit 1)`},
		"a chain whose first plugin did not start, which lo's immediate DEL shows": {func(s *story) {
			s.at(0, bridged("bridge", "portmap")).
				plugin(1, "l", "ADD", "loopback", on("lo")).exit(8, "l").plugin(12, "d", "DEL", "loopback", on("lo")).exit(13, "d").tick(2000)
		}, `setup c1 1-8: next operation
  ADD lo 1-8 network cni-loopback never run: bridge, portmap: loopback ADD 1-8
teardown c1 12-13: settled
  DEL lo 12-13 network cni-loopback: loopback DEL 12-13`},
		"but not lo's later DEL, nor that of one of two networks": {func(s *story) {
			s.at(0, bridged("bridge", "portmap")).
				plugin(1, "l", "ADD", "loopback", on("lo")).exit(8, "l").plugin(70, "d", "DEL", "loopback", on("lo")).exit(71, "d").tick(2000)
			two := bridged("bridge")
			two.Networks = append(two.Networks, event.Network{Name: "other", Plugins: []event.Plugin{{Type: "macvlan"}}})
			s.at(2100, two).plugin(2101, "m", "ADD", "loopback", on("lo")).exit(2108, "m").plugin(2112, "n", "DEL", "loopback", on("lo")).exit(2113, "n").tick(5000)
		}, `setup c1 1-8: next operation
  ADD lo 1-8 network cni-loopback: loopback ADD 1-8
teardown c1 70-71: settled
  DEL lo 70-71 network cni-loopback: loopback DEL 70-71
setup c1 2101-2108: next operation
  ADD lo 2101-2108 network cni-loopback: loopback ADD 2101-2108
teardown c1 2112-2113: settled
  DEL lo 2112-2113 network cni-loopback: loopback DEL 2112-2113`},
		"a chain that was cut off by the end of the observation is not said to have stopped": {func(s *story) {
			s.at(0, bridged("bridge", "portmap", "firewall")).
				plugin(1, "b", "ADD", "bridge").exit(8, "b").end()
		}, `setup c1 1-8: observation ended; partial: in progress when cniscope exited
  ADD eth0 1-8 network pods: bridge ADD 1-8`},
		"nor is a plugin that was running": {func(s *story) {
			s.at(0, bridged("bridge", "portmap")).
				plugin(1, "b", "ADD", "bridge").exit(8, "b").plugin(9, "p", "ADD", "portmap").at(12, &event.Tick{}).end()
		}, `setup c1 1-12: observation ended; partial: in progress when cniscope exited
  ADD eth0 1-12 network pods: bridge ADD 1-8, portmap ADD 9-12 (unfinished)`},
		"a probe that detaches cuts off what is in progress, and starts again without it": {func(s *story) {
			s.plugin(1, "b", "ADD", "bridge").command(3, "i", "b", "ip").at(5, &event.Degraded{Feature: event.Probe}).over()
			s.at(6, &event.Degraded{Feature: event.Probe, Restored: true}).exit(7, "i").exit(8, "b").
				plugin(10, "d", "DEL", "bridge").exit(12, "d").tick(3000)
		}, `setup c1 1-5: observation ended; partial: in progress when the probe was detached
  ADD eth0 1-5: bridge ADD 1-5 (unfinished) [ip 3-5 (unfinished)]
teardown c1 10-12: settled
  DEL eth0 10-12: bridge DEL 10-12`},
		"a chain that was through, or that failed, is whole also if the observation ends at once": {func(s *story) {
			s.at(0, bridged("bridge", "portmap", "firewall")).
				plugin(1, "b", "ADD", "bridge").exit(8, "b").plugin(9, "p", "ADD", "portmap").exit(10, "p", 1).end()
		}, `setup c1 1-10: observation ended
  ADD eth0 1-10 network pods never run: firewall: bridge ADD 1-8, portmap ADD 9-10 (exit 1)`},
		"a chain whose next plugin is late is not cut in two": {func(s *story) {
			s.at(0, bridged("bridge", "portmap")).
				plugin(1, "b", "ADD", "bridge").exit(8, "b").tick(3000).
				plugin(4000, "p", "ADD", "portmap").exit(4001, "p").tick(5500)
		}, `setup c1 1-4001: settled
  ADD eth0 1-4001 network pods: bridge ADD 1-8, portmap ADD 4000-4001`},
		"nor is the word of NRI missed that is late; without NRI nobody waits for it": {func(s *story) {
			s.at(0, &event.Sandbox{Phase: event.SandboxPresent, ID: "old"}).
				plugin(1, "b", "ADD", "bridge").exit(8, "b").tick(3000).
				at(4000, &event.Sandbox{Phase: event.SandboxRunning, ID: "c1"}).tick(4001).
				at(4002, &event.Degraded{Feature: "nri"}).
				plugin(4003, "c", "ADD", "bridge", container("c2")).exit(4004, "c").tick(5500)
		}, `setup c1 1-8: sandbox running
  ADD eth0 1-8: bridge ADD 1-8
setup c2 4003-4004: settled
  ADD eth0 4003-4004: bridge ADD 4003-4004`},
		"nor is it waited for where it may have been lost": {func(s *story) {
			s.at(0, &event.Sandbox{Phase: event.SandboxPresent, ID: "old"}).
				plugin(1, "b", "ADD", "bridge").exit(8, "b").at(9, &event.Degraded{Feature: "nri"}).
				at(10, &event.Degraded{Feature: "nri", Restored: true}).tick(1500)
		}, `setup c1 1-8: settled
  ADD eth0 1-8: bridge ADD 1-8`},
		"a plugin that is missing makes the runtime undo the rest within a second": {func(s *story) {
			s.at(0, bridged("bridge", "portmap")).
				plugin(1, "b", "ADD", "bridge").exit(8, "b").plugin(1007, "d", "DEL", "bridge").exit(1010, "d").
				plugin(5001, "b", "ADD", "bridge", for2).exit(5008, "b").plugin(6008, "d", "DEL", "bridge", container("c2")).
				exit(6010, "d").tick(30_000)
		}, `setup c1 1-8: next operation
  ADD eth0 1-8 network pods never run: portmap: bridge ADD 1-8
setup c2 5001-5008: next operation
  ADD eth0 5001-5008 network pods: bridge ADD 5001-5008
teardown c1 1007-1010: settled
  DEL eth0 1007-1010: bridge DEL 1007-1010
teardown c2 6008-6010: settled
  DEL eth0 6008-6010: bridge DEL 6008-6010`},
		"what ends where another runtime's network would is not broken": {func(s *story) {
			s.at(0, bridged("bridge", "portmap")).plugin(1, "b", "ADD", "bridge").exit(8, "b").tick(30_000)
		}, `setup c1 1-8: settled
  ADD eth0 1-8 network pods: bridge ADD 1-8`},
		"nothing is missing in a sandbox that runs": {func(s *story) {
			s.at(0, bridged("bridge", "portmap")).
				plugin(1, "b", "ADD", "bridge").exit(8, "b").
				at(9, &event.Sandbox{Phase: event.SandboxRunning, ID: "c1"}).tick(10)
		}, `setup c1 1-8: sandbox running
  ADD eth0 1-8 network pods: bridge ADD 1-8`},
		"who knows what the runtime had read of a configuration that has just changed": {func(s *story) {
			s.at(0, bridged("bridge")).
				plugin(1, "b", "DEL", "bridge").exit(8, "b").
				at(9, bridged("tuning", "bridge")).tick(2000)
		}, `teardown c1 1-8: settled
  DEL eth0 1-8 network pods: bridge DEL 1-8`},
		"DEL goes through the chain backwards": {func(s *story) {
			s.at(0, bridged("bridge", "portmap")).
				plugin(1, "p", "DEL", "portmap").exit(2, "p").plugin(3, "b", "DEL", "bridge").exit(4, "b").tick(2000)
		}, `teardown c1 1-4: settled
  DEL eth0 1-4 network pods: portmap DEL 1-2, bridge DEL 3-4`},
		"two networks that could both be meant leave the call unnamed": {func(s *story) {
			two := &event.Networks{Networks: append(bridged("bridge", "a").Networks, bridged("bridge", "b").Networks...)}
			s.at(0, two).plugin(1, "b", "ADD", "bridge").exit(2, "b").tick(2000)
		}, `setup c1 1-2: settled
  ADD eth0 1-2: bridge ADD 1-2`},
		"a chain that is run again is another call, to its end": {func(s *story) {
			s.plugin(0, "a", "STATUS", "bridge").exit(2, "a").plugin(3, "b", "STATUS", "portmap").exit(5, "b").
				plugin(300, "c", "STATUS", "bridge").exit(302, "c").plugin(303, "d", "STATUS", "portmap").exit(305, "d").tick(2000)
		}, `other c1 0-305: settled
  STATUS eth0 0-5: bridge STATUS 0-2, portmap STATUS 3-5
  STATUS eth0 300-305: bridge STATUS 300-302, portmap STATUS 303-305`},
		"the same plugin again is another call, unless the chain has it twice": {func(s *story) {
			s.plugin(0, "b", "DEL", "tuning").exit(1, "b").plugin(2, "c", "DEL", "tuning").exit(3, "c").tick(2000).
				at(2004, bridged("tuning", "tuning")).
				plugin(2005, "d", "DEL", "tuning").exit(2006, "d").plugin(2007, "e", "DEL", "tuning").exit(2008, "e").tick(4000)
		}, `teardown c1 0-3: settled
  DEL eth0 0-1: tuning DEL 0-1
  DEL eth0 2-3: tuning DEL 2-3
teardown c1 2005-2008: settled
  DEL eth0 2005-2008 network pods: tuning DEL 2005-2006, tuning DEL 2007-2008`},
		"a run that an agent starts for the plugin belongs to the call that waits": {func(s *story) {
			s.plugin(0, "m", "ADD", "multus-shim").plugin(2, "x", "ADD", "macvlan", on("net1"), by("daemon")).
				at(3, lost("x")).exit(4, "x").exit(6, "m").tick(2000)
		}, `setup c1 0-6: settled; partial: lost events: over quota, 3
  ADD eth0 0-6: multus-shim ADD 0-6 [macvlan ADD 2-4]`},
		"a call that hangs is let go at last, unfinished": {
			func(s *story) { s.plugin(0, "b", "ADD", "bridge").tick(59_999).tick(60_000).exit(90_000, "b") },
			`setup c1 0-60000: held too long; partial: still running
  ADD eth0 0-60000: bridge ADD 0-60000 (unfinished)`,
		},
		"lost events touch the run they belong to, or all that was open": {func(s *story) {
			s.plugin(0, "b", "ADD", "bridge").plugin(0, "o", "ADD", "bridge", container("c2")).
				at(1, &event.Lost{Source: "probe", Reason: "ring full", Count: 3, Process: "b"}).exit(2, "b").tick(1500).
				at(1501, &event.Lost{Source: "probe", Reason: "ring full", Count: 1}).exit(1502, "o").tick(4000)
		}, `setup c1 0-2: settled; partial: lost events: ring full, 3
  ADD eth0 0-2: bridge ADD 0-2
setup c2 0-1502: settled; partial: lost events: ring full, 1
  ADD eth0 0-1502: bridge ADD 0-1502`},
		"what a run lost is said though its first process is over": {func(s *story) {
			s.plugin(0, "b", "ADD", "bridge").plugin(0, "o", "ADD", "bridge", container("c2")).exit(2, "b").exit(2, "o").
				at(3, &event.Lost{Source: "probe", Reason: "over its quota", Count: 3, Process: "b"}).tick(4000)
		}, `setup c1 0-2: settled; partial: lost events: over its quota, 3
  ADD eth0 0-2: bridge ADD 0-2
setup c2 0-2: settled
  ADD eth0 0-2: bridge ADD 0-2`},
		"what a stranger lost touches nobody": {func(s *story) {
			s.plugin(0, "b", "ADD", "bridge").
				at(1, &event.Lost{Source: "probe", Reason: "over its quota", Count: 3, Process: "x"}).exit(2, "b").tick(4000)
		}, `setup c1 0-2: settled
  ADD eth0 0-2: bridge ADD 0-2`},
		"what is told to be lost before its run has been read touches it": {func(s *story) {
			s.plugin(0, "o", "ADD", "bridge", container("c2")).
				at(9, &event.Lost{Source: "probe", Reason: "over quota", Count: 3, Process: "b"}).
				at(9, &event.Lost{Source: "probe", Reason: "ring full", Count: 3, Process: "x"}).tick(1).
				plugin(2, "b", "ADD", "bridge").exit(3, "o").exit(3, "b").tick(4000)
		}, `setup c2 0-3: settled
  ADD eth0 0-3: bridge ADD 0-3
setup c1 2-3: settled; partial: lost events: over quota, 3
  ADD eth0 2-3: bridge ADD 2-3`},
		"what a server is told to have lost before its call has been read touches that": {func(s *story) {
			s.plugin(0, "b", "ADD", "bridge").plugin(0, "o", "ADD", "bridge", container("c2")).
				at(9, &event.Lost{Source: "probe", Reason: "over quota", Count: 3, Process: "a"}).
				calls(1, "b", "k").exit(3, "b").calls(10, "o", "l").exit(11, "o").tick(4000)
		}, `setup c1 0-3: settled; partial: lost events: over quota, 3
  ADD eth0 0-3: bridge ADD 0-3
setup c2 0-11: settled
  ADD eth0 0-11: bridge ADD 0-11`},
		"what a server lost touches whom it works for": {func(s *story) {
			s.plugin(0, "b", "ADD", "bridge").plugin(0, "o", "ADD", "bridge", container("c2")).calls(1, "b", "k").
				at(2, &event.Lost{Source: "probe", Reason: "over its quota", Count: 3, Process: "a"}).exit(3, "b").exit(3, "o").
				tick(4000)
		}, `setup c1 0-3: settled; partial: lost events: over its quota, 3
  ADD eth0 0-3: bridge ADD 0-3
setup c2 0-3: settled
  ADD eth0 0-3: bridge ADD 0-3`},
		"what ran before cniscope did is marked": {func(s *story) {
			s.plugin(5, "b", "ADD", "bridge", func(e *event.Exec) { e.InFlight = true }).exit(9, "b").tick(2000)
		}, `setup c1 5-9: settled; partial: already running when cniscope started
  ADD eth0 5-9: bridge ADD 5-9 (in flight)`},
	}.each(t, tell, func(s *story) string {
		s.over()
		return draw(s.closed)
	})
}
