package judge

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/model"
)

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
