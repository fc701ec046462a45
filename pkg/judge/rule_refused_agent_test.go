package judge

import "testing"

func TestRefusedAgent(t *testing.T) {
	rulings(t, map[string]ruling{
		"it tries again and again": {
			op:    add(seen(plugin("p", 0, 1000), dialled("unix", "/run/a.sock", from(20, 940), turnedDown(19, "ENOENT")), slept(from(30, 900)))),
			cause: CauseRefused, says: `^920ms of 1s: plugin p failed 19 times to connect to /run/a\.sock \(ENOENT\)$`, remedy: `^start the agent that listens at /run/a\.sock`, report: "containerd/containerd#4666",
		},
		"and fails because of it": {
			op:    add(with(seen(plugin("p", 0, 50), dialled("unix", "/run/a.sock", from(20, 40), turnedDown(3, "ECONNREFUSED")), wrote("no agent")), exit(1))),
			cause: CauseRefused, says: `^plugin p failed \(code 11\): "no agent"; plugin p failed 3 times to connect to /run/a\.sock \(ECONNREFUSED\)$`,
		},
		"and says so itself": {
			op: add(with(seen(plugin("p", 0, 50), dialled("unix", "/run/a.sock", from(20, 40), turnedDown(3, "ECONNREFUSED")),
				wrote("dial unix /run/a.sock: connect: connection refused")), exit(1))),
			cause: CauseRefused, says: `^plugin p failed \(code 11\): "dial unix /run/a.sock: connect: connection refused"; it tried 3 times$`, remedy: `^start the agent`,
		},
		"control: it says another address": {
			op: add(with(seen(plugin("p", 0, 50), dialled("unix", "/run/a.sock", from(20, 40), turnedDown(1, "ECONNREFUSED")),
				wrote("dial unix /run/b.sock: connect: connection refused")), exit(1))),
			cause: CauseRefused, says: `b.sock: connect: connection refused"; plugin p failed to connect to /run/a\.sock \(ECONNREFUSED\)$`,
		},
		"and fails two seconds later, after it cleaned up": {
			op:    add(with(seen(plugin("p", 0, 2040), dialled("unix", "/run/a.sock", from(20, 40), turnedDown(3, "ECONNREFUSED")), wrote("no agent")), exit(1))),
			cause: CauseRefused,
		},
		"control: it fails later than that": {
			op:    add(with(seen(plugin("p", 0, 2041), dialled("unix", "/run/a.sock", from(20, 40), turnedDown(3, "ECONNREFUSED")), wrote("no agent")), exit(1))),
			cause: CauseFailed,
		},
		"packets that get lost are no refusal": {
			op:    add(seen(plugin("p", 0, 4000), dialled("tcp", "10.0.0.9:443", from(20, 3900), turnedDown(1, "ETIMEDOUT")))),
			cause: CauseRefused, says: `plugin p failed to connect to 10\.0\.0\.9:443 \(ETIMEDOUT\)$`, remedy: `^start the machine behind 10\.0\.0\.9, open the packet filters`,
		},
		"nor is an address without a way there": {
			op:    add(seen(plugin("p", 0, 4000), dialled("tcp", "10.0.0.9:443", from(20, 3900), turnedDown(1, "EHOSTUNREACH")))),
			cause: CauseRefused, says: `plugin p failed to connect to 10\.0\.0\.9:443 \(EHOSTUNREACH\)$`, remedy: `^add a route to 10\.0\.0\.9 `,
		},
		"control: refusals that took no time explain nothing": {
			op: add(seen(plugin("p", 0, 1000), dialled("unix", "/run/a.sock", from(20, 21), turnedDown(1, "ENOENT")), slept(from(30, 1000)))), cause: CauseSleep,
		},
		"control: it called somebody else after that, and failed of something else": {
			op: add(with(seen(plugin("p", 0, 50), dialled("unix", "/run/a.sock", from(20, 21), turnedDown(1, "ENOENT")),
				dialled("unix", "/run/b.sock", from(22, 40)), wrote("no")), exit(1))), cause: CauseFailed,
		},
		"control: nobody misses nscd": {
			op:    add(with(seen(plugin("p", 0, 50), dialled("unix", "/var/run/nscd/socket", from(20, 21), turnedDown(1, "ENOENT")), wrote("no")), exit(1))),
			cause: CauseFailed, says: `^plugin p failed \(code 11\): "no"$`,
		},
	})
}
