package judge

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

// Requests from before the call have no known beginning.
func TestWaitsSinceBeforeAnybodyLooked(t *testing.T) {
	stopped := func(start, end int64) func(*model.Connection) {
		return was(event.AgentStopped, "do_signal_stop", from(start, end))
	}
	// dbd asks the stopped store at 400 ms, and has an earlier exchange with it.
	behind := func(early *model.Fact, more ...func(*model.Connection)) *model.Operation {
		late := waits("store", from(400, 970), stopped(400, 970))
		return calling(did(waits("dbd", from(10, 980), append(more, did(late, early))...)))
	}
	since := func(end int64, state ...func(*model.Connection)) *model.Fact {
		return waits("store", from(10, end), append(state, clipped)...)
	}
	rulings(t, map[string]ruling{
		"what was asked before the peer was looked at": {
			op:    behind(since(975, stopped(180, 975))),
			cause: CausePeer, says: `^965ms of 1s: plugin p waited for store \(stopped\), through agentd and dbd`, remedy: `kill -CONT`,
		},
		"which the peer never answered": {
			op:    behind(since(1200, stopped(180, 970), was(event.AgentIdle, "", from(970, 1200)))),
			cause: CausePeer, says: `^960ms of 1s: plugin p waited for store \(stopped, 2 times\), through agentd and dbd`, remedy: `kill -CONT`,
		},
		"it asked on several streams": {
			op:    behind(waits("store", from(30, 985), stopped(180, 985))),
			cause: CausePeer, says: `^940ms of 1s: plugin p waited for store \(stopped, 2 times\), through agentd and dbd`,
		},
		"until it had asked somebody else": {
			op:    behind(since(990, stopped(180, 990)), did(waits("lease", from(15, 300)))),
			cause: CausePeer, says: `^675ms of 1s: plugin p waited for store \(stopped, 2 times\), through agentd and dbd`,
		},
		"and had one short exchange with it when it was at work again": {
			op:    calling(did(waits("dbd", from(10, 990), did(waits("store", from(15, 970), stopped(15, 940)), waits("store", from(930, 980)))))),
			cause: CausePeer, says: `^965ms of 1s: plugin p waited for store \(stopped\), through agentd and dbd`,
		},
		"while it did something short itself": {
			op: calling(did(waits("dbd", from(10, 980), unasked, stopped(10, 980)),
				&model.Fact{When: from(500, 501), What: &model.Request{Request: &event.Request{Name: "RTM_SETLINK"}}, Attribution: &model.Attribution{Evidence: model.Candidate}})),
			cause: CausePeer, says: `^969ms of 1s: plugin p waited for dbd \(stopped\), through agentd`,
		},
		"control: the peer was at work first": {
			op:    behind(since(990, was(event.AgentIdle, "", from(180, 350)), stopped(350, 990))),
			cause: CausePeer, says: `^570ms of 1s: plugin p waited for store \(stopped\), through agentd and dbd`,
		},
		"control: nobody looked at it for long": {
			op:    behind(since(990, stopped(700, 990))),
			cause: CausePeer, says: `^570ms of 1s: plugin p waited for store \(stopped\), through agentd and dbd`,
		},
		"control: who asked it was busy": {
			op: behind(since(990, stopped(100, 990)), was(event.AgentRunning, "", from(10, 390)),
				func(c *model.Connection) { c.Work.CPU = 380 * ms }),
			cause: CausePeer, says: `^570ms of 1s: plugin p waited for store \(stopped\), through agentd and dbd`,
		},
		"control: it is another process that was stopped": {
			op:    behind(waits("watched", from(10, 990), stopped(180, 990), clipped)),
			cause: CausePeer, says: `^570ms of 1s: plugin p waited for store \(stopped\), through agentd and dbd`,
		},
	})
}
