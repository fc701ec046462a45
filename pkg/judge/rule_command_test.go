package judge

import (
	"fmt"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

func TestManyCommands(t *testing.T) {
	dozens := func(n int) []*model.Image {
		return append(several(n, func(i int64) *model.Image { return ran("iptables", 20*i, 20*i+15) }), ran("ip", 20*int64(n), 20*int64(n)+5))
	}
	compiles := func(n, each int64) []*model.Image {
		return append(dozens(50), several(int(n), func(i int64) *model.Image { return ran("clang", 1010+i*each, 1010+(i+1)*each) })...)
	}
	busy := several(50, func(i int64) *model.Image { return ran("iptables", 20*i+10, 20*i+15) })
	forking := func(kind event.WaitKind, shift int64) *model.Image {
		var waits []func(*model.Image)
		for i := range int64(50) {
			waits = append(waits, waited(kind, "vfork", from(20*i, 20*i+10-shift)))
		}
		return seen(plugin("portmap", 0, 1000, busy...), waits...)
	}
	rulings(t, map[string]ruling{
		"each is forked slowly on a busy node": {
			op: add(forking(event.WaitCall, 0)), cause: CauseCommands, says: `^740ms of 1s: plugin portmap ran iptables \(50 times\)$`,
		},
		"control: the forks end before the commands begin": {
			op: add(forking(event.WaitCall, 3)), cause: CauseSystemCall, says: `^350ms of 1s: portmap waited in system call vfork \(50 times\)`,
		},
		"dozens of iptables": {
			op:    add(plugin("portmap", 0, 1050, dozens(50)...)),
			cause: CauseCommands, says: `^755ms of 1\.05s: 51 commands ran, 50 of them iptables$`, remedy: `nftables`, report: "containernetworking/plugins#510",
		},
		"just so many": {
			op: add(plugin("portmap", 0, 800, dozens(39)...)), cause: CauseCommands, says: `^590ms of 800ms: 40 commands ran, 39 of them iptables$`,
		},
		"control: one less": {op: add(plugin("portmap", 0, 800, dozens(38)...)), cause: CauseCommand, says: `ran iptables \(38 times\)`},
		"one of them takes more than any, and less than a quarter": {
			op:    add(plugin("portmap", 0, 1110, append(dozens(45), ran("slow", 910, 1110))...)),
			cause: CauseCommands, says: `^880ms of 1\.11s: 47 commands ran, 45 of them iptables$`,
		},
		"control: one of them takes a third": {
			op:    add(plugin("portmap", 0, 1250, append(dozens(45), ran("slow", 910, 1250))...)),
			cause: CauseCommand, says: `^675ms of 1\.25s: plugin portmap ran iptables \(45 times\)`,
		},
		"control: not so many": {op: add(plugin("portmap", 0, 1050, dozens(30)...)), cause: CauseUnexplained},
		"a few of another program take more than any": {
			op:    add(plugin("p", 0, 1910, append(compiles(5, 160), ran("ip", 1810, 1910))...)),
			cause: CauseCommands, says: `^1\.66s of 1\.91s: 57 commands ran, clang 5 times for 800ms$`,
		},
		"less than half of them are of one program": {
			op: add(plugin("p", 0, 1010, append(append(several(20, func(i int64) *model.Image { return ran("ip", 20*i, 20*i+15) }),
				several(14, func(i int64) *model.Image { return ran("nft", 400+20*i, 400+20*i+10) })...),
				several(16, func(i int64) *model.Image { return ran("tc", 680+20*i, 680+20*i+10) })...)...)),
			cause: CauseCommands, says: `^600ms of 1\.01s: 50 commands ran, ip 20 times for 300ms$`,
		},
		"control: a few take most of it": {
			op:    add(plugin("p", 0, 5010, compiles(10, 400)...)),
			cause: CauseCommand, says: `^4s of 5\.01s: plugin p ran clang \(10 times\)$`,
		},
		"control: one of them takes it all": {
			op:    add(plugin("portmap", 0, 2000, append(dozens(45), ran("slow", 910, 2000))...)),
			cause: CauseCommand, says: `plugin portmap ran slow`,
		},
	})
}

func TestSlowCommand(t *testing.T) {
	rulings(t, map[string]ruling{
		"a command of a plugin, and what it ran": {
			op:    add(plugin("p", 0, 1000, ran("policyctl", 10, 900, ran("sleep", 20, 890)))),
			cause: CauseCommand, says: `^890ms of 1s: plugin p ran policyctl, which ran sleep$`, remedy: `^remove the command sleep from policyctl`,
		},
		"a command of an agent": {
			op:    add(seen(plugin("p", 0, 1000), dialled("unix", "/run/a.sock", from(0, 990), served([]*model.Image{ran("Get-NetAdapter", 10, 900)}, nil)))),
			cause: CauseCommand, says: `^890ms of 1s: agentd at /run/a\.sock ran Get-NetAdapter, while plugin p waited`, report: "-",
		},
		"a command of Antrea's agent that is not PowerShell": {
			op:    add(seen(plugin("antrea", 0, 1000), dialled("unix", "/run/a.sock", from(0, 990), served([]*model.Image{ran("policyctl", 10, 900)}, nil)))),
			cause: CauseCommand, remedy: `^run strace`, report: "-",
		},
		"runs from one function of an agent": {
			op: add(seen(plugin("p", 0, 1000), dialled("unix", "/run/a.sock", from(0, 990), served([]*model.Image{
				cameFrom(ran("netadapter", 10, 400), 136), cameFrom(ran("netadapter", 410, 900), 136),
			}, nil)))),
			cause: CauseCommand, says: `^880ms of 1s: agentd .* ran netadapter \(2 times\).*; Go function getNetAdapter \(interface\.go:136\) started netadapter$`, report: "-",
		},
		"runs from different lines of it": {
			op:    add(plugin("p", 0, 1000, cameFrom(ran("policyctl", 10, 400), 7), cameFrom(ran("policyctl", 410, 900), 9))),
			cause: CauseCommand, says: `^880ms of 1s: plugin p ran policyctl \(2 times\); Go function getNetAdapter \(interface\.go\) started policyctl$`,
		},
		"control: runs from different functions, one of them unknown": {
			op:    add(plugin("p", 0, 1000, cameFrom(ran("policyctl", 10, 400), 7), ran("policyctl", 410, 900))),
			cause: CauseCommand, says: `^880ms of 1s: plugin p ran policyctl \(2 times\)$`,
		},
		"the confirmed one of two runs, though it is a little shorter": {
			op: add(seen(plugin("p", 0, 1000), dialled("unix", "/run/a.sock", from(0, 990), served([]*model.Image{
				attributed(ran("netadapter", 10, 480), model.Candidate, false, 0), ran("netadapter", 490, 950),
			}, nil)))),
			cause: CauseCommand, says: `^460ms of 1s: agentd .* ran netadapter, while plugin p waited; 1 more run of netadapter may be for another pod \(unconfirmed\)$`, report: "-",
		},
		"iptables that asks for names": {
			op:    add(plugin("azure-vnet", 0, 1000, ran("sh", 10, 900, listing(20, 890, 10, "-t", "nat", "-L")))),
			cause: CauseCommand, remedy: `^add -n to iptables -t nat -L, which azure-vnet runs, or fix the nameserver`,
		},
		"control: iptables that asks for none": {
			op:    add(plugin("azure-vnet", 0, 1000, listing(20, 890, 10, "-t", "nat", "-nvL"))),
			cause: CauseCommand, remedy: `^(run|replace) `,
		},
		"control: iptables that lists many rules": {
			op:    add(plugin("azure-vnet", 0, 1000, listing(20, 890, 800, "-t", "nat", "-L"))),
			cause: CauseCommand, remedy: `^(run|replace) `,
		},
		"control: it is soon over": {op: add(with(plugin("p", 0, 1000, ran("ip", 10, 20)), cpu(1000))), cause: CausePlugin},
	})
}

func cameFrom(im *model.Image, line int) *model.Image {
	im.Stack = []event.Frame{{Function: "example.com/agent.(*network).getNetAdapter", File: "example.com/agent/interface.go", Line: line}}
	return im
}

func listing(from, to, cpu int64, args ...string) *model.Image {
	im := ran("iptables", from, to)
	im.Args, im.CPU = args, cpu*ms
	return im
}

func TestPowerShell(t *testing.T) {
	rulings(t, map[string]ruling{
		"an agent starts it, twice": {
			op: add(seen(plugin("antrea", 0, 4500), dialled("unix", "/run/a.sock", from(10, 4400),
				served([]*model.Image{ran("powershell.exe", 20, 2100), ran("ovs-vsctl", 2100, 2150), ran("powershell.exe", 2150, 4300)}, nil)))),
			cause: CausePowerShell, says: `^4\.23s of 4\.5s: agentd at /run/a\.sock ran powershell\.exe \(2 times\), while plugin antrea waited$`,
			remedy: `HCN`, report: "antrea-io/antrea#4859",
		},
		"control: the agent of another plugin, which calls itself Antrea's": {
			op: add(seen(plugin("p", 0, 4500), dialled("unix", "/run/a.sock", from(10, 4400),
				served([]*model.Image{ran("powershell.exe", 20, 4300)}, nil), func(c *model.Connection) { c.Agent.Name = "antrea-agent" }))),
			cause: CausePowerShell, says: `antrea-agent at /run/a\.sock ran powershell`, remedy: `HCN`, report: "-",
		},
		"control: what nobody knows for whom it was started": {
			op: add(seen(plugin("antrea", 0, 4500), dialled("unix", "/run/a.sock", from(10, 4400),
				served(nil, []*model.Image{ran("powershell.exe", 20, 2100)})))),
			cause: CauseAgent,
		},
	})
}

func TestRetriedCommand(t *testing.T) {
	failing := func(code uint32, at ...int64) (all []*model.Image) {
		for _, from := range at {
			im := with(ran("ip6tables", from, from+10), exit(code))
			im.Args = []string{"-F", "INPUT"}
			all = append(all, im)
			if from < at[len(at)-1] {
				all = append(all, ran("sleep", from+10, from+1000))
			}
		}
		return all
	}
	hides := func(im *model.Image) { im.Hidden = 1 }
	rulings(t, map[string]ruling{
		"it fails each time, and a script sleeps between": {
			op:    add(plugin("istio-cni", 0, 3100, failing(3, 0, 1000, 2000, 3000)...)),
			cause: CauseCommand, remedy: `^run ip6tables -F INPUT by hand in the same network namespace`,
			says: `^2\.97s of 3\.1s: ip6tables exited with 3, and plugin istio-cni ran it again \(3 waits of about 990ms\)$`,
		},
		"a script sleeps after its last try, too": {
			op:    add(plugin("istio-cni", 0, 3100, append(failing(3, 0, 1000, 2000), ran("sleep", 2010, 3000))...)),
			cause: CauseCommand, says: `^2\.97s of 3\.1s: ip6tables exited with 3, and plugin istio-cni ran it again \(3 waits of about 990ms\)`,
		},
		"the plugin itself sleeps between": {
			op: add(seen(plugin("mesh", 0, 3100, with(ran("ip", 0, 10), exit(1)), with(ran("ip", 1010, 1020), exit(1)), ran("ip", 2020, 2030)),
				slept(from(10, 1010)), slept(from(1020, 2020)))),
			cause: CauseCommand, says: `^2s of 3\.1s: ip exited with 1, and plugin mesh ran it again`, remedy: `^run ip by hand`,
		},
		"control: its withheld arguments may differ": {
			op: add(plugin("p", 0, 3100, with(failing(3, 0, 1000, 2000, 3000)[0], hides), ran("sleep", 10, 1000), with(failing(3, 1000)[0], hides),
				ran("sleep", 1010, 2000), with(failing(3, 2000)[0], hides))), cause: CauseCommand, remedy: `^remove the command sleep from p$`,
		},
		"control: the command succeeds each time": {
			op: add(plugin("p", 0, 3100, failing(0, 0, 1000, 2000, 3000)...)), cause: CauseCommand, remedy: `^remove the command sleep from p$`,
		},
		"control: one failure is not the reason for all sleeps": {
			op: add(plugin("p", 0, 3100, append(failing(3, 0, 1000), ran("sleep", 1010, 3000))...)), cause: CauseCommand, remedy: `^remove the command sleep from p$`,
		},
		"control: iptables' lock": {
			op: add(plugin("p", 0, 3100, failing(4, 0, 1000, 2000, 3000)...)), cause: CauseRetry,
		},
		"control: it fails, and the plugin computes between": {
			op: add(with(plugin("p", 0, 3100, with(ran("ip", 0, 10), exit(1)), with(ran("ip", 1010, 1020), exit(1)), ran("ip", 2020, 2030)), cpu(3000))), cause: CausePlugin,
		},
	})
}

func TestIptablesRetry(t *testing.T) {
	slept := func(call string, each int64, n int) (all []func(*model.Image)) {
		for i := range int64(n) {
			all = append(all, waited(event.WaitSleep, call, from(10+i*each, 10+(i+1)*each)))
		}
		return all
	}
	naps := func(each int64, n int) []func(*model.Image) { return slept("pselect6", each, n) }
	rulings(t, map[string]ruling{
		"it sleeps in steps of a second": {
			op:    add(plugin("istio-cni", 0, 3100, seen(ran("iptables", 0, 3050), naps(1005, 3)...))),
			cause: CauseRetry, says: `^3\.02s of 3\.1s: iptables slept 3 times for 1s`, remedy: `1\.8\.8`, report: "istio/istio#51739",
		},
		"whoever ran it sleeps, after exit code 4": {
			op: add(plugin("istio-cni", 0, 3100, with(ran("iptables", 0, 10), exit(4)), with(ran("iptables", 1010, 1020), exit(4)),
				with(ran("iptables-restore", 2020, 2030), exit(4)), ran("iptables", 3030, 3040))),
			cause: CauseRetry, says: `^3s of 3\.1s: iptables exited with 4 \(lock held\) and ran again \(3 waits of about 1s\)$`,
		},
		"iptables-nft has no lock: the kernel refused the rule": {
			op: add(plugin("mesh", 0, 3100, with(ran("iptables-nft", 0, 10), exit(4)),
				seen(with(ran("iptables-nft", 1010, 1020), exit(4)), refused("NFT_MSG_NEWRULE", "EINVAL", from(1012, 1013))), ran("iptables-nft", 3030, 3040))),
			cause: CauseRetry, report: "microsoft/WSL#11884", remedy: `^run iptables-nft by hand`,
			says: `^3.*s of 3\.1s: iptables-nft exited with 4, because the kernel refused NFT_MSG_NEWRULE \(EINVAL\), and ran again \(2 waits of about 1\.5`,
		},
		"so it does by its other name": {
			op:    add(plugin("mesh", 0, 3100, seen(with(ran("iptables", 0, 10), exit(4)), refused("NFT_MSG_NEWRULE", "ENOENT", from(2, 3))), ran("iptables", 3030, 3040))),
			cause: CauseRetry, remedy: `^run iptables by hand`,
		},
		"control: other sleeps are no retries": {
			op: add(plugin("p", 0, 3100, seen(ran("iptables", 0, 3050), naps(600, 5)...))), cause: CauseCommand,
		},
		"control: it waits for a DNS server": {
			op: add(plugin("p", 0, 3100, seen(ran("iptables", 0, 3050), slept("poll", 1005, 3)...))), cause: CauseCommand,
		},
		"control: other programs sleep, too": {
			op: add(plugin("p", 0, 3100, seen(ran("sleep", 0, 3050), naps(1005, 3)...))), cause: CauseCommand,
		},
		"control: exit code 1 says that a rule is not there": {
			op: add(with(plugin("p", 0, 1100, with(ran("iptables", 0, 10), exit(1)), ran("iptables", 1010, 1020)), cpu(1000))), cause: CausePlugin,
		},
		"control: a wait for the lock says who has it": {
			op: add(plugin("p", 0, 3100, seen(ran("iptables", 0, 3050), append(naps(1005, 3), waited(event.WaitLock, "/run/xtables.lock", from(10, 3040)))...))), cause: CauseLock,
		},
	})
}

func TestNativeReplacements(t *testing.T) {
	for command, want := range map[string]string{
		"iptables-restore": "nftables", "ip6tables": "nftables", "ip": "netlink", "ovs-vsctl": "OVSDB", "sysctl": "/proc/sys", "PowerShell.exe": "HCN", "policyctl": "",
	} {
		rulings(t, map[string]ruling{command: {
			op: add(plugin("p", 0, 1000, ran(command, 0, 990))), remedy: fmt.Sprint("^(replace |run strace -f -r "+command+").*", want),
			cause: map[bool]Cause{true: CausePowerShell, false: CauseCommand}[command == "PowerShell.exe"],
		}})
	}
}
