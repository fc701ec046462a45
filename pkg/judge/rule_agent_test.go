package judge

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/test/harness"
)

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

func TestSlowAgent(t *testing.T) {
	rulings(t, map[string]ruling{
		"what listens there does not answer": {
			op:    add(seen(plugin("cilium-cni", 0, 1000), dialled("unix", "/run/cilium.sock", from(10, 950)))),
			cause: CauseAgent, says: `^940ms of 1s: plugin cilium-cni waited for /run/cilium\.sock$`, report: "cilium/cilium#45103",
		},
		"control: the agent of another plugin, at an address like Cilium's": {
			op:    add(seen(plugin("p", 0, 1000), dialled("unix", "/run/cilium.sock", from(10, 950)))),
			cause: CauseAgent, report: "-",
		},
		"what it does is known": {
			op: add(seen(plugin("cilium-cni", 0, 1000), dialled("unix", "/run/cilium.sock", from(10, 950), served(nil, nil),
				func(c *model.Connection) { c.Work.CPU = 900 * ms }))),
			cause: CauseAgent, says: `plugin cilium-cni waited for agentd at /run/cilium\.sock; agentd was on a CPU for 900ms$`,
		},
		"control: it runs something that takes so long": {
			op:    add(seen(plugin("p", 0, 1000), dialled("unix", "/run/a.sock", from(0, 990), served([]*model.Image{ran("conntrack", 10, 900)}, nil)))),
			cause: CauseCommand,
		},
		"control: it answers at once": {
			op: add(seen(plugin("p", 0, 1000), dialled("unix", "/run/a.sock", from(0, 20)), slept(from(30, 1000)))), cause: CauseSleep,
		},
	})
}

// at is where a connection's agent was for most of it.
func at(perhaps bool) func(*model.Connection) {
	return func(c *model.Connection) {
		c.Work.Perhaps, c.Work.Stack = perhaps, []event.Frame{
			{Function: "example.com/agent.(*network).allocate", File: "example.com/agent/ipam.go", Line: 12}, {Function: "main.add"},
		}
	}
}

func TestTheFunctionOfAnAgentIsNamed(t *testing.T) {
	inside := seen(plugin("p", 0, 1000), slept(from(10, 980)))
	inside.In = []event.Frame{{Function: "main.cmdAdd", File: "main.go", Line: 7}}
	asks := func(network, address string, upTo int64, change ...func(*model.Connection)) *model.Operation {
		asked := dialled(network, address, from(0, upTo), change...)
		im := seen(plugin("p", 0, 1000), asked, slept(from(upTo, max(upTo, 700))))
		im.In = inside.In
		return add(im)
	}
	rulings(t, map[string]ruling{
		"of a plugin that calls an agent": {
			op:    asks("unix", "/run/a.sock", 990, served(nil, nil)),
			cause: CauseAgent, says: `waited for agentd at /run/a\.sock, in cmdAdd \(main\.go:7\)$`,
		},
		"of a plugin that asks the API server": {
			op:    asks("tcp", "10.96.0.1:443", 990),
			cause: CauseAPIServer, says: `looks like the API server, in cmdAdd \(main\.go:7\)$`,
		},
		"control: elsewhere for most of its time": {
			op:    asks("unix", "/run/a.sock", 400, served(nil, nil)),
			cause: CauseAgent, says: `waited for agentd at /run/a\.sock;`,
		},
		"of a call": {
			op: calling(at(false)), cause: CauseAgent, says: `; agentd was in add > allocate \(ipam\.go:12\)$`,
		},
		"of one of several": {
			op: calling(at(true)), cause: CauseAgent, says: `; agentd was possibly in add > allocate \(ipam\.go:12\)$`,
		},
		"that waits for a peer": {
			op:    calling(did(waits("dbd", from(10, 980))), at(false)),
			cause: CausePeer, says: `waited for dbd, through agentd, in add > allocate \(ipam\.go:12\)$`,
		},
		"of a plugin": {
			op: add(inside), cause: CauseSleep, says: `plugin p slept, in cmdAdd \(main\.go:7\)$`,
		},
	})
}

func TestBusyAgent(t *testing.T) {
	failing := func(message string) ruling {
		return ruling{op: add(with(seen(plugin("cilium-cni", 0, 90), wrote(message)), exit(1)))}
	}
	table := map[string]ruling{}
	for name, message := range map[string]string{
		"Cilium's agent": `unable to create endpoint: [PUT /endpoint/{id}][429] putEndpointIdTooManyRequests`,
		"HTTP":           `agent answered: HTTP 429`,
		"in words":       `status 500: Too Many Requests`,
		"gRPC":           `rpc error: code = ResourceExhausted desc = busy`,
	} {
		r := failing(message)
		r.cause, r.says, r.remedy, r.report = CauseBusy, `^the agent of plugin cilium-cni rejected the request \(too many requests\); plugin cilium-cni failed \(code 11\): `, `rate-limit`, "cilium/cilium#22023"
		table[name] = r
	}
	for name, message := range map[string]string{
		"control: an id":               `no endpoint 429`,
		"control: another number":      `HTTP 4290`,
		"control: the plugin's limits": `client rate limiter Wait returned an error: context deadline exceeded`,
	} {
		r := failing(message)
		r.cause = CauseFailed
		table[name] = r
	}
	r := ruling{
		op:    add(with(seen(plugin("p", 0, 900), wrote("HTTP 429"), dialled("unix", "/run/a.sock", from(100, 900))), exit(1))),
		cause: CauseBusy, says: `"HTTP 429"$`,
		remedy: `^start fewer pods at once, or raise the agent's limit of requests$`, report: "-",
	}
	table["the wait for that is not repeated"] = r
	rulings(t, table)
}

func TestAPeerThatWasNotFoundIsNamedSo(t *testing.T) {
	for want, c := range map[string]model.Connection{
		"etcd":                         {Network: "unix", Address: "/run/db", Agent: &event.Actor{Name: "etcd"}},
		"/run/db (process not found)":  {Network: "unix", Address: "/run/db"},
		"a process that was not found": {Network: "unix"},
		"10.0.0.1:443":                 {Network: "tcp", Address: "10.0.0.1:443"},
	} {
		harness.Equal(t, peerName(&c), want)
	}
}

func attributed(im *model.Image, e model.Evidence, periodic bool, others int) *model.Image {
	im.Attribution = &model.Attribution{Evidence: e, Periodic: periodic, Others: make([]model.Key, others)}
	return im
}

// If all calls wait for shared work, it is the cause of each.
func TestCandidates(t *testing.T) {
	calling := func(own, shared []*model.Image) *model.Operation {
		return add(seen(plugin("p", 0, 1000), dialled("unix", "/run/a.sock", from(0, 990), served(own, shared))))
	}
	images := func(im ...*model.Image) []*model.Image { return im }
	shared := func(name string, start, end int64, others int) *model.Image {
		return attributed(ran(name, start, end), model.Candidate, false, others)
	}
	rulings(t, map[string]ruling{
		"what the agent ran for one of several calls is named": {
			op:    calling(nil, images(shared("clang", 100, 900, 2), shared("ip", 900, 910, 2))),
			cause: CauseCommand, says: `^800ms of 1s: agentd at /run/a\.sock, serving this call or one of 2 others, ran clang, while plugin p waited$`, remedy: `^raise the CPU limit of agentd, shared by clang, if`,
		},
		"with a remedy for the command, where there is one": {
			op: calling(nil, images(shared("iptables", 100, 900, 2))), cause: CauseCommand, remedy: `^replace iptables with nftables`,
		},
		"control: what took half of the time is only named": {
			op: calling(nil, images(shared("clang", 100, 600, 2))), cause: CauseAgent, says: `; during the call agentd, serving this call or one of 2 others, ran clang for 500ms$`, remedy: `^$`,
		},
		"control: so is what the agent ran for another call": {
			op: add(seen(plugin("p", 0, 1000), dialled("unix", "/run/a.sock", from(0, 990), served(nil, images(shared("clang", 100, 900, 1))),
				func(c *model.Connection) { c.Work.Meanwhile[0].Perhaps = false }))),
			cause: CauseAgent, says: `; during the call agentd, serving another call, ran clang for 800ms$`, remedy: `^$`,
		},
		"as are several programs of one name": {
			op:    calling(nil, images(shared("llc", 0, 200, 1), shared("llc", 200, 400, 1), shared("clang", 400, 700, 2))),
			cause: CauseAgent, says: `; during the call agentd, serving this call or another, ran llc for 400ms$`,
		},
		"control: which overlap": {
			op:    calling(nil, images(shared("llc", 0, 300, 1), shared("llc", 10, 300, 1), shared("clang", 400, 750, 2))),
			cause: CauseAgent, says: `; during the call agentd, serving this call or one of 2 others, ran clang for 350ms$`,
		},
		"control: what took little of the time is not": {
			op: calling(nil, images(shared("clang", 100, 200, 2))), cause: CauseAgent, says: `plugin p waited for agentd at /run/a.sock$`,
		},
		"control: nor is what the agent runs anyway": {
			op: calling(nil, images(attributed(ran("ipset", 100, 900), model.Candidate, true, 0))), cause: CauseAgent, says: `plugin p waited for agentd at /run/a.sock$`,
		},
		"a candidate has no remedy": {
			op:    calling(images(attributed(ran("ipset", 100, 900), model.Candidate, false, 0)), nil),
			cause: CauseCommand, says: `^800ms of 1s: agentd at /run/a\.sock ran ipset, while plugin p waited$`, remedy: `^$`,
		},
		"what is certain has": {
			op: calling(images(attributed(ran("ipset", 100, 900), model.Certain, false, 0)), nil), cause: CauseCommand, remedy: `netlink`,
		},
		"and so has what that runs": {
			op:    calling(images(attributed(ran("sh", 100, 900, ran("ipset", 100, 900)), model.Certain, false, 0)), nil),
			cause: CauseCommand, says: `ran sh, which ran ipset`, remedy: `.`,
		},
	})
}

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
