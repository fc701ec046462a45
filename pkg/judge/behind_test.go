package judge

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

// waits is an agent's exchange with a named process.
func waits(name string, when model.Interval, change ...func(*model.Connection)) *model.Fact {
	c := &model.Connection{Network: "unix", Address: "/run/" + name, Exchange: &model.Exchange{}}
	image := func() *model.Image {
		return &model.Image{Program: model.Program{Name: name}, Exit: model.Exit{Ended: true}, Start: when.Start, End: when.End}
	}
	c.Agent, c.Answered = &event.Actor{PID: 812, Name: name, Process: event.Process(name)}, true
	c.Work = &model.Work{Own: image(), Shared: image()}
	for _, f := range change {
		f(c)
	}
	return &model.Fact{When: when, What: c, Attribution: &model.Attribution{Evidence: model.Candidate}}
}

// did adds facts to the work of a connection's agent.
func did(facts ...*model.Fact) func(*model.Connection) {
	return func(c *model.Connection) { c.Work.Own.Facts = append(c.Work.Own.Facts, facts...) }
}

// was sets the state of a connection's agent.
func was(state event.AgentState, function string, when model.Interval) func(*model.Connection) {
	return func(c *model.Connection) {
		c.Work.States = append(c.Work.States, model.Spell{Interval: when, State: state, Channel: function})
	}
}

// polls are exchanges of an agent's timer, from 50 ms to 950 ms of a call.
func polls(took, every int64) (all []*model.Fact) {
	for at := int64(50); at+took <= 950; at += every {
		all = append(all, waits("dbd", from(at, at+took)))
	}
	return all
}

func asleep(perhaps bool) func(*model.Connection) {
	return func(c *model.Connection) {
		c.Work.Stack = []event.Frame{{Function: "main.renew", File: "lease.go", Line: 7, Sleeps: true}}
		c.Work.Perhaps = perhaps
	}
}

func clipped(c *model.Connection) { c.Exchange.Clipped = true }
func unended(c *model.Connection) { c.Exchange.Unended = true }
func askedAt(at int64) func(*model.Connection) {
	return func(c *model.Connection) { c.Exchange.Asked = at * ms }
}
func unasked(c *model.Connection) { c.Exchange.Unasked = true }
func receipt(c *model.Connection) { c.Exchange.Receipt = true }
func remote(c *model.Connection) {
	c.Network, c.Address, c.Agent, c.Work = "tcp", "192.0.2.7:5432", nil, nil
}

// others: possibly also for n other calls.
func others(n int, f *model.Fact, when model.Interval) func(*model.Connection) {
	return func(c *model.Connection) {
		c.Work.Shared.Facts = append(c.Work.Shared.Facts, f)
		c.Work.Meanwhile = append(c.Work.Meanwhile, model.Meanwhile{
			When: when, Fact: f, Attribution: model.Attribution{Evidence: model.Candidate, Others: make([]model.Key, n)}, Perhaps: true,
		})
	}
}

// calling is a call of one second that waits for an agent.
func calling(change ...func(*model.Connection)) *model.Operation {
	return add(seen(plugin("p", 0, 1000), dialled("unix", "/run/a.sock", from(0, 990), append([]func(*model.Connection){served(nil, nil)}, change...)...)))
}

func TestWhoAnAgentWaitsFor(t *testing.T) {
	stopped := func(start, end int64) func(*model.Connection) {
		return was(event.AgentStopped, "do_signal_stop", from(start, end))
	}
	rulings(t, map[string]ruling{
		"a peer that is stopped": {
			op:    calling(did(waits("dbd", from(10, 980), stopped(10, 980)))),
			cause: CausePeer, says: `^970ms of 1s: plugin p waited for dbd \(stopped\), through agentd$`, remedy: `kill -CONT 812`,
		},
		"for some of the time": {
			op:    calling(did(waits("dbd", from(10, 980), stopped(10, 400)))),
			cause: CausePeer, says: `^970ms of 1s: plugin p waited for dbd \(stopped for 390ms\), through agentd`,
		},
		"one that says nothing": {
			op:    calling(did(waits("dbd", from(10, 980), was(event.AgentIdle, "", from(10, 980))))),
			cause: CausePeer, says: `^970ms of 1s: plugin p waited for dbd, through agentd$`, remedy: `^read the log of dbd \(pid 812\) of that time`,
		},
		"one in the kernel": {
			op:    calling(did(waits("dbd", from(10, 980), was(event.AgentUninterruptible, "nfs_wait_bit_killable", from(10, 980))))),
			cause: CausePeer, says: `waited for dbd \(blocked in kernel function nfs_wait_bit_killable\)`, remedy: `network file system.*/proc/812/stack`,
		},
		"one in a system call": {
			op: calling(did(waits("dbd", from(10, 980), was(event.AgentUninterruptible, "percpu_rwsem_wait", from(10, 980)),
				did(&model.Fact{When: from(20, 970), What: &model.Wait{Kind: event.WaitCall, Name: "openat"}})))),
			cause: CausePeer, says: `waited for dbd \(blocked in kernel function percpu_rwsem_wait\)`, remedy: `fsfreeze -u.*/proc/812/stack`,
		},
		"one that waits for somebody in its turn, perhaps": {
			op:    calling(did(waits("dbd", from(10, 980), was(event.AgentIdle, "", from(10, 980)), did(waits("switchd", from(10, 970), clipped))))),
			cause: CausePeer, says: `waited for dbd, through agentd`, remedy: `^$`,
		},
		"one on another machine": {
			op:    calling(did(waits("", from(10, 980), remote))),
			cause: CausePeer, says: `^970ms of 1s: plugin p waited for 192\.0\.2\.7:5432, through agentd$`, remedy: `^$`,
		},
		"one of which nobody knows what it did": {
			op: calling(did(waits("dbd", from(10, 980)))), cause: CausePeer, says: `waited for dbd, through`, remedy: `^$`,
		},
		"one behind a port of this node": {
			op:    calling(did(waits("", from(10, 980), remote, func(c *model.Connection) { c.Address = "127.0.0.1:6640" }))),
			cause: CausePeer, remedy: `^run ss -tlnp 'sport = :6640'`,
		},
		"the peer's own peer": {
			op:    calling(did(waits("dbd", from(10, 980), did(waits("switchd", from(20, 970), stopped(20, 970)))))),
			cause: CausePeer, says: `^950ms of 1s: plugin p waited for switchd \(stopped\), through agentd and dbd$`, remedy: `^run kill -CONT \d+ to resume switchd if`,
		},
		"which does not explain that the peer itself was stopped": {
			op:    calling(did(waits("dbd", from(10, 980), stopped(15, 980), did(waits("switchd", from(20, 975)))))),
			cause: CausePeer, says: `waited for dbd \(stopped\), through agentd`,
		},
		"nor that the agent was": {
			op:    calling(stopped(5, 985), did(waits("dbd", from(10, 980)))),
			cause: CauseStopped, says: `^990ms of 1s: plugin p waited for agentd at /run/a\.sock; agentd was stopped for 980ms$`, remedy: `kill -CONT 44`,
		},
		"nor that the peer was on a CPU": {
			op: calling(did(waits("dbd", from(10, 980), was(event.AgentRunning, "", from(10, 980)),
				func(c *model.Connection) { c.Work.CPU = 900 * ms }, did(waits("client", from(20, 975)))))),
			cause: CausePeer, says: `waited for dbd \(on a CPU\), through agentd`, remedy: `nr_throttled`,
		},
		"control: of which some thread was ready to run": {
			op:    calling(did(waits("dbd", from(10, 980), was(event.AgentRunning, "", from(10, 980)), did(waits("switchd", from(20, 975)))))),
			cause: CausePeer, says: `waited for switchd, through agentd and dbd`,
		},
		"several, one after another": {
			op:    calling(did(waits("dbd", from(10, 300)), waits("dbd", from(310, 600)), waits("other", from(610, 900)))),
			cause: CausePeer, says: `^580ms of 1s: plugin p waited for dbd \(2 times\), through agentd$`,
		},
		"twice, after a pause": {
			op:    calling(did(waits("dbd", from(10, 400)), waits("dbd", from(620, 980)))),
			cause: CausePeer, says: `^750ms of 1s: plugin p waited for dbd \(2 times\), through agentd$`,
		},
		"again and again, after longer and longer pauses": {
			op: calling(did(waits("dbd", from(10, 180)), waits("dbd", from(190, 360)), waits("dbd", from(400, 570)),
				waits("dbd", from(800, 980)))),
			cause: CausePeer, says: `^690ms of 1s: plugin p waited for dbd \(4 times\), through agentd$`,
		},
		"others' exchanges while it sleeps": {
			op:    calling(was(event.AgentIdle, "", from(0, 990)), did(polls(300, 450)...), asleep(false)),
			cause: CauseIdle, says: `was idle for 990ms, in renew \(lease.go:7\)$`,
		},
		"while it sleeps, one for the whole time": {
			op:    calling(was(event.AgentIdle, "", from(0, 990)), did(waits("dbd", from(40, 960))), asleep(false)),
			cause: CausePeer, says: `^920ms of 1s: plugin p waited for dbd, through agentd, in renew`,
		},
		"control: possibly while it sleeps": {
			op:    calling(was(event.AgentIdle, "", from(0, 990)), did(polls(300, 450)...), asleep(true)),
			cause: CausePeer, says: `waited for dbd`,
		},
		"control: one that a timer of the agent polls": {
			op:    calling(was(event.AgentIdle, "", from(0, 990)), did(polls(150, 250)...)),
			cause: CauseAgent, says: `^990ms of 1s: plugin p waited for agentd at /run/a\.sock$`, remedy: `^read agentd's log`,
		},
		"control: and that answers quickly": {
			op:    calling(was(event.AgentIdle, "", from(0, 990)), did(polls(20, 100)...)),
			cause: CauseIdle, says: `agentd was idle for 990ms$`, remedy: `^read agentd's log`,
		},
		"control: while it waits for another": {
			op:    calling(did(append(polls(100, 250), waits("store", from(20, 970)))...)),
			cause: CausePeer, says: `^950ms of 1s: plugin p waited for store, through agentd$`,
		},
		"one that a timer polls, and that is stopped": {
			op:    calling(did(waits("dbd", from(10, 400), stopped(10, 400)), waits("dbd", from(590, 980), stopped(590, 980)))),
			cause: CausePeer, says: `waited for dbd \(stopped, 2 times\), through agentd$`, remedy: `kill -CONT 812`,
		},
		"one that was stopped, and resumed when the agent had asked the next": {
			op:    calling(did(waits("dbd", from(10, 800), stopped(10, 790)), waits("other", from(700, 980)))),
			cause: CausePeer, says: `^690ms of 1s: plugin p waited for dbd \(stopped\), through agentd`, remedy: `kill -CONT 812`,
		},
		"control: one that was only slow": {
			op: calling(did(waits("dbd", from(10, 800)), waits("other", from(700, 980)))), cause: CauseAgent,
		},
		"a subscription that goes on says nothing": {
			op: calling(did(waits("watched", from(10, 1200)), waits("dbd", from(20, 970)))), cause: CausePeer, says: `waited for dbd,`,
		},
		"nor does one that nobody saw end": {
			op: calling(did(waits("watched", from(10, 950), unended, stopped(10, 950)))), cause: CauseAgent, says: `waited for agentd`,
		},
		"unless it was perhaps there before, and could not answer": {
			op: calling(did(waits("dbd", from(10, 950), unended, clipped, stopped(10, 950)))), cause: CausePeer, says: `waited for dbd \(stopped\)`,
		},
		"nor does one from before": {
			op: calling(did(waits("watched", from(0, 980), clipped))), cause: CauseAgent, says: `waited for agentd`,
		},
		"unless nobody could answer": {
			op: calling(did(waits("dbd", from(0, 980), clipped, stopped(0, 980)))), cause: CausePeer, says: `^980ms of 1s: plugin p waited for dbd \(stopped\)`,
		},
		"nor does what nobody asked for": {
			op: calling(did(waits("watched", from(10, 980), unasked))), cause: CauseAgent,
		},
		"nor does a receipt of that": {
			op: calling(did(waits("watched", from(10, 980), receipt))), cause: CauseAgent,
		},
		"unless nobody could tell": {
			op:    calling(did(waits("dbd", from(10, 15)), waits("dbd", from(15, 980), unasked, did(waits("switchd", from(20, 970), stopped(20, 970)))))),
			cause: CausePeer, says: `^950ms of 1s: plugin p waited for switchd \(stopped\), through agentd and dbd$`,
		},
		"heartbeats to somebody else meanwhile": {
			op:    calling(did(waits("dbd", from(10, 980)), waits("lease", from(200, 220)), waits("lease", from(400, 420)), waits("lease", from(983, 985)))),
			cause: CausePeer, says: `^970ms of 1s: plugin p waited for dbd, through agentd`,
		},
		"what the agent ran beside it, perhaps for itself, is not in the way": {
			op: calling(did(waits("dbd", from(10, 980), stopped(10, 980))), func(c *model.Connection) {
				c.Work.Own.Children = []*model.Image{attributed(ran("ipset", 100, 900), model.Candidate, false, 0)}
			}),
			cause: CausePeer, says: `^970ms of 1s: plugin p waited for dbd \(stopped\)`,
		},
		"what it certainly ran for the call is": {
			op: calling(did(waits("dbd", from(10, 980))), func(c *model.Connection) {
				c.Work.Own.Children = []*model.Image{attributed(ran("ipset", 100, 900), model.Certain, false, 0)}
			}),
			cause: CauseCommand, says: `^800ms of 1s: agentd at /run/a\.sock ran ipset`,
		},
		"what the peer ran": {
			op: calling(did(waits("dbd", from(10, 980), func(c *model.Connection) {
				c.Work.Own.Children = []*model.Image{attributed(ran("compact", 100, 970), model.Certain, false, 0)}
			}))),
			cause: CauseCommand, says: `^870ms of 1s: dbd ran compact, while plugin p waited through agentd$`,
		},
		"a lock that the peer waited for": {
			op:    calling(did(waits("dbd", from(10, 980), did(&model.Fact{When: from(100, 970), What: &model.Wait{Kind: event.WaitLock, Name: "flock", Path: "/run/db.lock"}})))),
			cause: CauseLock, says: `^870ms of 1s: dbd waited for file lock /run/db\.lock$`,
		},
		"one that never answers": {
			op: add(with(seen(plugin("p", 0, 1000), wrote("deadline exceeded"), dialled("unix", "/run/a.sock", from(0, 990), served(nil, nil),
				did(waits("dbd", from(10, 2000), stopped(10, 2000))))), exit(1))),
			cause: CausePeer, says: `"deadline exceeded"; 980ms of 1s: plugin p waited for dbd \(stopped\), through agentd$`, remedy: `kill -CONT`,
		},
		"control: one that is slow, and a plugin that fails of something else": {
			op:    add(with(seen(plugin("p", 0, 1000), wrote("no"), dialled("unix", "/run/a.sock", from(0, 990), served(nil, nil), did(waits("dbd", from(10, 980))))), exit(1))),
			cause: CauseFailed, says: `^plugin p failed \(code 11\): "no"; 970ms of 1s: plugin p waited for dbd`,
		},
		"for one of several calls": {
			op:    calling(others(7, waits("dbd", from(10, 980), stopped(10, 980)), from(10, 980))),
			cause: CausePeer, says: `^970ms of 1s: plugin p waited while agentd, serving this call or one of 7 others, waited for dbd \(stopped\)$`, remedy: `^run kill -CONT 812`,
		},
		"for another call": {
			op:    calling(others(1, waits("dbd", from(10, 980), stopped(10, 980)), from(10, 980)), func(c *model.Connection) { c.Work.Meanwhile[0].Perhaps = false }),
			cause: CausePeer, says: `^970ms of 1s: plugin p waited while agentd, serving another call, waited for dbd \(stopped\)$`, remedy: `^run kill -CONT 812`,
		},
		"control: for several calls, and not stopped": {
			op:    calling(others(7, waits("dbd", from(10, 980), was(event.AgentIdle, "", from(10, 980))), from(10, 980))),
			cause: CauseAgent, says: `; during the call agentd, serving this call or one of 7 others, waited for dbd for 970ms$`, remedy: `^$`,
		},
		"control: for several calls, by a timer": {
			op: calling(was(event.AgentIdle, "", from(0, 990)), func(c *model.Connection) {
				for _, f := range polls(150, 250) {
					others(7, f, f.When)(c)
				}
			}),
			cause: CauseAgent, says: `^990ms of 1s: plugin p waited for agentd at /run/a\.sock$`, remedy: `^read agentd's log`,
		},
		"control: for several calls, twice": {
			op: calling(was(event.AgentIdle, "", from(0, 990)), others(7, waits("dbd", from(10, 400)), from(10, 400)),
				others(7, waits("dbd", from(620, 980)), from(620, 980))),
			cause: CauseAgent, says: `; during the call agentd, serving this call or one of 7 others, waited for dbd for 750ms$`,
		},
		"control: for several calls, and stopped for less than half of the call": {
			op:    calling(others(7, waits("dbd", from(10, 480), stopped(10, 480)), from(10, 480))),
			cause: CauseAgent, says: `; during the call agentd, serving this call or one of 7 others, waited for dbd \(stopped\) for 470ms$`, remedy: `^$`,
		},
		"control: for several calls, while the agent itself was stopped": {
			op:    calling(stopped(5, 985), others(7, waits("dbd", from(10, 980), stopped(10, 980)), from(10, 980))),
			cause: CauseStopped, remedy: `kill -CONT 44`,
		},
		"of a peer that others ask, too": {
			op: calling(did(waits("dbd", from(10, 980), was(event.AgentIdle, "", from(10, 980)),
				others(1, waits("switchd", from(20, 970), stopped(20, 970)), from(20, 970))))),
			cause: CausePeer, says: `^950ms of 1s: plugin p waited while dbd, serving this call or another, waited for switchd \(stopped\)$`, remedy: `^run kill -CONT 812 to resume switchd`,
		},
		"and behind that one": {
			op:    calling(others(7, waits("dbd", from(10, 980), did(waits("switchd", from(20, 970), stopped(20, 970)))), from(10, 980))),
			cause: CausePeer, says: `^970ms of 1s: plugin p waited while agentd, serving this call or one of 7 others, waited for switchd \(stopped\), through dbd$`,
		},
	})
}

func TestWhatAnAgentWasFoundDoing(t *testing.T) {
	rulings(t, map[string]ruling{
		"stopped for less than half of it": {
			op:    calling(was(event.AgentStopped, "do_signal_stop", from(0, 400)), was(event.AgentIdle, "", from(400, 990))),
			cause: CauseAgent, says: `plugin p waited for agentd at /run/a.sock; agentd was stopped for 400ms$`, remedy: `kill -CONT 44`,
		},
		"frozen": {
			op: calling(was(event.AgentFrozen, "do_freezer_trap", from(0, 980))), cause: CauseStopped, says: `; agentd was frozen for 980ms$`, remedy: `cgroup\.freeze \(/proc/44/cgroup`,
		},
		"waiting for a disk": {
			op:    calling(was(event.AgentUninterruptible, "jbd2_log_wait_commit", from(0, 980))),
			cause: CauseAgent, says: `; agentd was blocked in kernel function jbd2_log_wait_commit for 980ms$`, remedy: `^move the files of agentd to a faster disk.*; /proc/44/stack`,
		},
		"on a CPU": {
			op:    calling(was(event.AgentRunning, "", from(0, 980)), func(c *model.Connection) { c.Work.CPU = 970 * ms }),
			cause: CauseAgent, says: `; agentd was on a CPU for 970ms$`, remedy: `nr_throttled.*perf record -p 44`,
		},
		"on a CPU all the time": {
			op:    calling(was(event.AgentRunning, "", from(0, 980)), func(c *model.Connection) { c.Work.CPU = 990 * ms }),
			cause: CauseAgent, says: `; agentd was on a CPU all the time$`, remedy: `nr_throttled.*perf record -p 44`,
		},
		"on a CPU for half of it": {
			op:    calling(func(c *model.Connection) { c.Work.CPU = 495 * ms }),
			cause: CauseAgent, says: `; agentd was on a CPU for 495ms$`,
		},
		"waiting for a CPU": {
			op:    calling(was(event.AgentRunning, "", from(0, 980)), func(c *model.Connection) { c.Work.CPU = 300 * ms }),
			cause: CauseAgent, says: `; agentd was on a CPU for 300ms, and waited for a CPU for 680ms$`, remedy: `nr_throttled`,
		},
		"idle all the time": {
			op: calling(was(event.AgentIdle, "", from(0, 990))), cause: CauseIdle, says: `; agentd was idle for 990ms$`, remedy: `^read agentd's log of that time`,
		},
		"control: but it ran something": {
			op: calling(was(event.AgentIdle, "", from(0, 990)), others(2, waits("dbd", from(10, 500)), from(10, 500))), cause: CauseAgent, remedy: `^$`,
		},
		"control: nothing is known of that": {op: calling(), cause: CauseAgent, says: `plugin p waited for agentd at /run/a.sock$`},
	})
}

// Processes share a stream, so its data may belong to another one.
func TestWhatIsAskedOnASharedStream(t *testing.T) {
	stopped := func(start, end int64) func(*model.Connection) {
		return was(event.AgentStopped, "do_signal_stop", from(start, end))
	}
	store := func(start, end int64, change ...func(*model.Connection)) func(*model.Connection) {
		return did(waits("store", from(start, end), append(change, stopped(start, end))...))
	}
	rulings(t, map[string]ruling{
		"a question after one that nobody answers": {
			op: calling(did(waits("dbd", from(2, 980), clipped, askedAt(100)))), cause: CausePeer, says: `^880ms of 1s: plugin p waited for dbd, through agentd`,
		},
		"after an acknowledgement": {
			op: calling(did(waits("dbd", from(2, 980), receipt, askedAt(100)))), cause: CausePeer, says: `^880ms of 1s: plugin p waited for dbd, through agentd`,
		},
		"of one that was stopped since before that": {
			op: calling(did(waits("dbd", from(2, 980), clipped, askedAt(100), stopped(2, 980)))), cause: CausePeer, says: `^978ms of 1s: plugin p waited for dbd \(stopped\)`,
		},
		"nobody answers while a third that they all wait for is stopped": {
			op:    calling(did(waits("dbd", from(2, 980), clipped, others(2, waits("store", from(10, 980), stopped(10, 980)), from(10, 980))))),
			cause: CausePeer, says: `^970ms of 1s: plugin p waited while dbd, serving this call or one of 2 others, waited for store \(stopped\)$`,
		},
		"control: a third that goes on": {
			op: calling(did(waits("dbd", from(2, 980), clipped, others(2, waits("store", from(10, 980)), from(10, 980))))), cause: CauseAgent,
		},
		"perhaps for others, of whom it asked for more than half of the time": {
			op:    calling(others(2, waits("dbd", from(10, 980), clipped, askedAt(494)), from(10, 980))),
			cause: CauseAgent, says: `; during the call agentd, serving this call or one of 2 others, waited for dbd for 970ms$`,
		},
		"control: for half of it": {
			op:    calling(others(2, waits("dbd", from(10, 980), clipped, askedAt(495)), from(10, 980))),
			cause: CauseAgent, says: `plugin p waited for agentd at /run/a.sock$`,
		},
		"control: nothing was asked": {
			op: calling(did(waits("dbd", from(2, 980), clipped))), cause: CauseAgent,
		},
		"what it read was no answer": {
			op:    calling(did(waits("dbd", from(10, 300), store(20, 990)), waits("dbd", from(300, 980), unasked, store(300, 990, clipped)))),
			cause: CausePeer, says: `^960ms of 1s: plugin p waited for store \(stopped, 2 times\), through agentd and dbd`,
		},
		"control: what it read was the answer": {
			op:    calling(did(waits("dbd", from(10, 800), store(20, 990)))),
			cause: CausePeer, says: `^790ms of 1s: plugin p waited for dbd, through agentd`,
		},
	})
}
