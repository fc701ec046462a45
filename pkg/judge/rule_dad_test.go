package judge

import "testing"

func TestDAD(t *testing.T) {
	rulings(t, map[string]ruling{
		"a plugin waits until nobody objects": {
			op:    add(seen(plugin("bridge", 0, 2000), detects(from(50, 1900)), slept(from(60, 1900)))),
			cause: CauseDAD, says: `^1\.85s of 2s: plugin bridge waited for IPv6 duplicate address detection of fd00::5 on eth0$`, remedy: `enabledad = false`, report: "containernetworking/plugins#680",
		},
		"control: it does something else meanwhile": {
			op: add(with(seen(plugin("bridge", 0, 2000), detects(from(50, 1900))), cpu(1990))), cause: CausePlugin,
		},
	})
}
