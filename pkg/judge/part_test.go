package judge

import "testing"

// Of parts that are about the same the few words are the same, however often it was, and
// whoever was in the way.
func TestWhatAPartIsDoesNotVary(t *testing.T) {
	for want, part := range map[string]Part{
		"command iptables":                       {Kind: Commands, Name: "iptables", Count: 40},
		"waiting for lock /run/xtables.lock":     {Kind: Locks, Name: "/run/xtables.lock", In: "plugin portmap", Count: 3, Detail: "held by kube-proxy (pid 81)"},
		"waiting for IPv6 DAD, in plugin bridge": {Kind: DAD, In: "bridge", Detail: "for fd00::2 on eth0"},
		"between plugins, in the runtime":        {Kind: Between},
	} {
		if got := part.What(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
