package judge

import "testing"

func TestAPIServer(t *testing.T) {
	rulings(t, map[string]ruling{
		"IPAM asks it, at its own port": {
			op: add(plugin("main", 0, 1000, seen(plugin("whereabouts", 10, 950),
				dialled("tcp", "10.0.0.1:6443", from(20, 500)), dialled("tcp", "10.0.0.1:6443", from(510, 940))))),
			cause: CauseAPIServer, says: `^910ms of 1s: plugin whereabouts waited \(2 times\) for 10\.0\.0\.1:6443, which looks like the API server$`,
			report: "k8snetworkplumbingwg/whereabouts#313",
		},
		"or as a service": {
			op: add(seen(plugin("p", 0, 1000), dialled("tcp", "10.96.0.1:443", from(20, 940)))), cause: CauseAPIServer,
			remedy: `asks less often$`, report: "-",
		},
		"control: a server on the internet is none": {
			op: add(seen(plugin("p", 0, 1000), dialled("tcp", "52.94.233.129:443", from(20, 940)))), cause: CauseAgent,
		},
		"control: nobody listens": {
			op: add(seen(plugin("p", 0, 1000), dialled("tcp", "10.0.0.1:6443", from(20, 940), turnedDown(9, "ECONNREFUSED")))), cause: CauseRefused,
		},
		"control: it answers at once, and something else takes long": {
			op: add(seen(plugin("p", 0, 1000), dialled("tcp", "10.0.0.1:6443", from(20, 40)), slept(from(50, 1000)))), cause: CauseSleep,
		},
	})
}
