package judge

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/model"
)

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
