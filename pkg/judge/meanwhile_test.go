package judge

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/model"
)

// attributed is what an agent ran, with what is known of for whom.
func attributed(im *model.Image, e model.Evidence, periodic bool, others int) *model.Image {
	im.Attribution = &model.Attribution{Evidence: e, Periodic: periodic, Others: make([]model.Key, others)}
	return im
}

// What may be for several calls is named, and charged to none; what is not certain has no remedy.
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
			cause: CauseAgent, says: `^990ms of 1s calling agentd at /run/a\.sock, from plugin p; meanwhile agentd ran clang, for this or 2 other calls$`,
		},
		"as are several programs of one name": {
			op:    calling(nil, images(shared("llc", 0, 200, 1), shared("llc", 200, 400, 1), shared("clang", 400, 700, 2))),
			cause: CauseAgent, says: `; meanwhile agentd ran llc, for this or another call$`,
		},
		"control: which overlap": {
			op:    calling(nil, images(shared("llc", 0, 300, 1), shared("llc", 10, 300, 1), shared("clang", 400, 750, 2))),
			cause: CauseAgent, says: `; meanwhile agentd ran clang, for this or 2 other calls$`,
		},
		"control: what took little of the time is not": {
			op: calling(nil, images(shared("clang", 100, 200, 2))), cause: CauseAgent, says: `from plugin p$`,
		},
		"control: nor is what the agent runs anyway": {
			op: calling(nil, images(attributed(ran("ipset", 100, 900), model.Candidate, true, 0))), cause: CauseAgent, says: `from plugin p$`,
		},
		"a candidate has no remedy": {
			op:    calling(images(attributed(ran("ipset", 100, 900), model.Candidate, false, 0)), nil),
			cause: CauseCommand, says: `^800ms of 1s in ipset, by agentd at /run/a\.sock while plugin p called it$`, remedy: `^$`,
		},
		"what is certain has": {
			op: calling(images(attributed(ran("ipset", 100, 900), model.Certain, false, 0)), nil), cause: CauseCommand, remedy: `netlink`,
		},
		"and so has what that runs": {
			op:    calling(images(attributed(ran("sh", 100, 900, ran("ipset", 100, 900)), model.Certain, false, 0)), nil),
			cause: CauseCommand, says: `in sh > ipset`, remedy: `.`,
		},
	})
}
