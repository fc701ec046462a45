package judge

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/timeline"
)

func TestManyCommands(t *testing.T) {
	dozens := func(n int) []*timeline.Image {
		return append(several(n, func(i int64) *timeline.Image { return ran("iptables", 20*i, 20*i+15) }), ran("ip", 20*int64(n), 20*int64(n)+5))
	}
	rulings(t, map[string]ruling{
		"dozens of iptables": {
			op:    add(plugin("portmap", 0, 1050, dozens(50)...)),
			cause: CauseCommands, says: `^755ms of 1\.05s in 51 commands, 50 of them iptables$`, remedy: `nftables`, report: "containernetworking/plugins#510",
		},
		"control: not so many": {op: add(plugin("portmap", 0, 1050, dozens(30)...)), cause: CauseUnexplained},
		"control: one of them takes it all": {
			op:    add(plugin("portmap", 0, 2000, append(dozens(45), ran("slow", 910, 2000))...)),
			cause: CauseCommand, says: `in slow, by plugin portmap`,
		},
	})
}
