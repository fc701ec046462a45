package judge

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

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
