package judge

import (
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
