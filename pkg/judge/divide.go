package judge

import (
	"cmp"
	"slices"
	"time"

	"github.com/cniscope/cniscope/pkg/model"
)

// divide divides the wall time of a call into c.Parts. Each instant goes to the innermost image, and there to its
// strongest wait: file lock, kernel lock, kernel request, other system call. Of a plugin's remaining time, CPU time
// and waits for a CPU are its own. The rest goes to weaker evidence: DAD, an agent, a timer, anything.
func divide(call *model.Call, c *Call) *evidence {
	e := &evidence{call: call, Call: c, spans: flatten(call)}
	e.waits = waitsOf(e.spans)
	between := charge(e.spans, e.waits, call.Start, call.End)

	var l ledger
	var longest time.Duration
	for i, rest := 0, e.waits; i < len(e.spans); i++ {
		n := 0
		for n < len(rest) && rest[n].span == i {
			n++
		}
		waited := starvation(&e.spans[i], rest[:n])
		if e.starved += waited; waited > longest {
			longest, e.hungriest = waited, i
		}
		l.span(&e.spans[i], rest[:n])
		rest = rest[n:]
	}
	l.add(Part{Kind: Between, Time: time.Duration(between)})
	c.Parts = l.sorted()
	return e
}

// starvation bounds an image's wait for a CPU while innermost; threads wait side by side.
func starvation(s *span, waits []wait) time.Duration {
	free := s.own
	for i := range waits {
		if w := &waits[i]; w.rank.weak() || w.rank == rankNetwork {
			free += w.own
		}
	}
	s.free = free
	return time.Duration(min(s.image.RunDelay, free))
}

type ledger struct {
	parts []Part
	most  []time.Duration // longest entry of each part
	index map[entry]int
}

// entry is the key of a part: confirmed and unconfirmed time is never summed.
type entry struct {
	kind      PartKind
	name      string
	candidate bool
}

func (l *ledger) add(p Part) {
	if l.index == nil {
		l.index, l.parts = map[entry]int{}, make([]Part, 0, 8)
	}
	key := entry{p.Kind, p.Name, p.Candidate > 0}
	i, known := l.index[key]
	if !known {
		l.index[key] = len(l.parts)
		l.parts, l.most = append(l.parts, p), append(l.most, p.Time)
		return
	}
	all := &l.parts[i]
	all.Time += p.Time
	all.Candidate += p.Candidate
	all.Count += p.Count
	if p.Time > l.most[i] {
		all.In, all.Detail, all.Asked, all.State, all.Doing, all.peer, all.when, l.most[i] = p.In, p.Detail, p.Asked, p.State, p.Doing, p.peer, p.when, p.Time
	}
}

func (l *ledger) sorted() []Part {
	all := slices.DeleteFunc(l.parts, func(p Part) bool { return p.Time <= 0 })
	slices.SortFunc(all, func(a, b Part) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return all
}

func (l *ledger) span(s *span, waits []wait) {
	if s.agent != nil {
		l.agent(s, waits)
		return
	}
	if s.image.Run == nil {
		name := s.image.Name
		if s.outer != "" && s.outer != name {
			name = s.outer + " > " + name
		}
		l.add(Part{Kind: Commands, Name: name, Count: 1}.took(s.own, s.candidate))
		for i := range waits {
			l.wait(&waits[i])
		}
		return
	}
	// CPU and run delay include the run's commands, so they are an upper bound. During requests and system calls the
	// kernel works instead.
	cpu := s.image.CPU + s.image.RunDelay
	for i := range waits {
		if w := &waits[i]; w.rank == rankNetwork || w.rank == rankCall {
			cpu -= w.own
		}
	}
	cpu = max(0, cpu)
	computed := min(s.own, cpu)
	cpu -= computed

	// The rest of the CPU time was during weak waits, the weakest first.
	for r := rank(0); r.weak(); r++ {
		for i := range waits {
			if w := &waits[i]; w.rank == r {
				beside := min(w.own, cpu)
				cpu, computed, w.own = cpu-beside, computed+beside, w.own-beside
			}
		}
	}
	for i := range waits {
		l.wait(&waits[i])
	}
	plugin := s.image.Run.Plugin
	l.add(Part{Kind: Plugins, Name: plugin, Time: time.Duration(computed), Count: 1, Detail: s.in()})
	rest := l.short(s, s.own-min(s.own, computed), waits)
	l.add(Part{Kind: Unexplained, Name: plugin, Time: time.Duration(rest), Count: 1, Detail: s.in()})
}

func (l *ledger) agent(s *span, waits []wait) {
	for i := range waits {
		l.wait(&waits[i])
	}
	p := Part{
		Kind: Agents, Name: Peer(s.agent), In: s.plugin, Count: 1, peer: s.agent,
		when: model.Interval{Start: s.start, End: s.end},
	}
	if s.again {
		p.Count = 0
	}
	if s.via == "" {
		p.Doing = doing(s.agent, p.when)
	} else {
		p.Name, p.Asked, p.State = peerName(s.agent), s.via, stateIn(s.agent.Work, p.when)
	}
	l.add(p.took(s.own, s.candidate))
}

func (l *ledger) wait(w *wait) {
	if w.own <= 0 {
		return
	}
	l.add(w.part.took(w.own, w.candidate))
}

// short enters waits too short to become facts, up to their tallies, and returns the remaining time.
func (l *ledger) short(s *span, rest int64, waits []wait) int64 {
	all := &s.image.Tallies
	queries, changes, settings := all[model.FactQuery], all[model.FactChange], all[model.FactSetting]
	kept := [ranks]int64{}
	for i := range waits {
		w := &waits[i]
		kept[w.rank] += w.end - w.start
	}
	for _, t := range []struct {
		rank rank
		all  model.Tally
		part Part
	}{
		{rankLock, all[model.FactLock], Part{Kind: Locks}},
		{rankMutex, all[model.FactMutex], Part{Kind: KernelLocks}},
		{rankNetwork, model.Tally{Count: queries.Count, Time: queries.Time + changes.Time + settings.Time}, Part{Kind: Network, In: s.image.Run.Plugin}},
	} {
		some := min(rest, max(0, t.all.Time-kept[t.rank]))
		t.part.Time, t.part.Count = time.Duration(some), t.all.Count
		l.add(t.part)
		rest -= some
	}
	return rest
}
