package judge

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

func TestAPeerThatIsSilent(t *testing.T) {
	table := map[string]ruling{}
	for name, peer := range map[string]struct {
		plugin, network, address string
		remedy                   string
	}{
		"etcd":                                   {"calico", "tcp", "10.0.0.7:2379", `^run etcdctl --endpoints=10\.0\.0\.7:2379 endpoint health`},
		"a DNS server":                           {"p", "udp", "10.0.0.53:53", `DNS server at 10\.0\.0\.53:53, or set another nameserver in this node's /etc/resolv\.conf`},
		"a DNS server, over TCP":                 {"p", "tcp", "[fd00::53]:53", `DNS server at \[fd00::53\]:53, .*dig @fd00::53 `},
		"an agent's socket":                      {"p", "unix", "/run/a.sock", `^run ss -xlp src /run/a\.sock`},
		"a DHCP server":                          {"p", "udp", "10.0.0.67:67", `^start the DHCP server or relay at 10\.0\.0\.67;`},
		"the cloud's metadata service":           {"p", "tcp", "169.254.169.254:80", `metadata service.*curl -m 2 http://169\.254\.169\.254:80/`},
		"ipamd of AWS":                           {"aws-cni", "tcp", "127.0.0.1:50051", `ipamd\.log`},
		"control: another plugin, at that port":  {"p", "tcp", "127.0.0.1:50051", `^run ss -tlnp 'sport = :50051'`},
		"control: a server of an unknown kind":   {"p", "tcp", "192.0.2.7:5432", `^$`},
		"control: an address that is redacted":   {"p", "tcp", "‹text 3›", `^$`},
		"control: the metadata service's subnet": {"p", "tcp", "169.254.169.123:80", `^$`},
	} {
		r := ruling{cause: CauseAgent, remedy: peer.remedy, report: "-"}
		r.op = add(seen(plugin(peer.plugin, 0, 1000), dialled(peer.network, peer.address, from(10, 950))))
		table[name] = r

		r.cause = CausePeer
		next := dialled(peer.network, peer.address, from(20, 930))
		r.op = add(seen(plugin(peer.plugin, 0, 1000), dialled("unix", "/run/agent.sock", from(10, 950), served(nil, nil),
			func(c *model.Connection) { next(c.Work.Own) })))
		table[name+", asked by an agent"] = r

		r.cause = CauseCommand
		r.op = add(plugin(peer.plugin, 0, 1000, ran("sh", 10, 900, seen(ran("curl", 20, 890), dialled(peer.network, peer.address, from(30, 880))))))
		r.says = `, which ran curl; it waited for .+$`
		table[name+", asked by a command"] = r
	}
	table["control: a command that was answered at once"] = ruling{
		op:    add(plugin("p", 0, 1000, seen(ran("curl", 20, 890), dialled("udp", "10.0.0.53:53", from(30, 60))))),
		cause: CauseCommand, says: `ran curl$`, remedy: `^run strace`,
	}
	table["control: a command whose peer is known"] = ruling{
		op: add(plugin("p", 0, 1000, seen(ran("curl", 20, 890), dialled("tcp", "127.0.0.1:53", from(30, 880),
			func(c *model.Connection) { c.Agent = &event.Actor{PID: 7, Name: "resolved"} })))),
		cause: CauseCommand, says: `ran curl$`, remedy: `^run strace`,
	}
	rulings(t, table)
}
