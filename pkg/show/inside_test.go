package show

import (
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
)

// Waits inside a plugin are drawn below it, with the holder.
func TestTheInsideOfAPlugin(t *testing.T) {
	part := func(kind, name string, from, to float64, about ...attribute.KeyValue) span {
		return span{kind: kind, name: name, from: from, to: to, about: about}
	}
	interfaceName := func(name string) attribute.KeyValue { return attribute.String("network.interface.name", name) }
	rtnl := attribute.String("cniscope.lock.name", "rtnl")
	eth0 := part("interface", "configure interface", 50, 59, interfaceName("eth0"), attribute.Int("cniscope.changes", 2))
	eth0.below = []span{part("request", "netlink RTM_NEWLINK", 51, 59, interfaceName("eth0"))}
	got := waterfalls(t, Options{Width: 100}, operation("shop/web-0", add(100,
		part("lock", "wait for lock", 1, 40, attribute.String("cniscope.lock.path", "/run/cni.lock"),
			attribute.String("cniscope.lock.holder_name", "other"), attribute.Int("cniscope.lock.holder_pid", 812),
			attribute.Float64("cniscope.lock.holder_age_ms", 39)),
		part("lock", "wait for lock", 40, 42, rtnl), part("lock", "wait for lock", 43, 45, rtnl),
		part("lock", "wait for lock", 46, 48, rtnl),
		eth0, part("interface", "configure interface", 60, 60, interfaceName("cni0"), attribute.Int("cniscope.changes", 1)),
		part("agent", "call agent", 61, 80, attribute.String("cniscope.agent", "agentd"),
			attribute.String("network.peer.address", "/run/agent.sock")),
		part("wait", "sleep", 81, 85, attribute.String("cniscope.system_call", "nanosleep")),
	)))
	_, rows, _ := strings.Cut(got, "0000000000000000\n")
	equal(t, rows, `
                               0                                100ms
  bridge ADD                  │██████████████████████████████████████│     100ms
    wait for lock             │▐██████████████                       │      39ms  /run/cni.lock  held by other (pid 812) for at least 39ms
    wait for lock ×3          │               █▐▐                    │       8ms  rtnl  waiting 6ms
    configure interface       │                   ███▌               │       9ms  eth0  2 changes
      netlink RTM_NEWLINK     │                   ▐██▌               │       8ms  eth0
    configure interface       │                      ▏               │        0s  cni0  1 change
    call agent                │                       ███████▌       │      19ms  agentd /run/agent.sock
    slept                     │                              ▏█▌     │       4ms  nanosleep`)
}
