package judge

import (
	"cmp"
	"slices"
	"time"

	"github.com/cniscope/cniscope/pkg/timeline"
)

// account divides the wall time of a call. At each instant the innermost image is charged,
// and of what that one waited for the strongest: a lock on a file, one of the kernel's, a
// request to the kernel, another system call. Of a plugin's time that is left, as much as
// it was on a CPU or waited for one is its own; the rest went to what it waited for by
// weaker evidence, as far as there is some: DAD, an agent, a timer, anything.
func account(call *timeline.Call) (parts []Part, l ledger) {
	l.spans = flatten(call)
	l.waits = located(l.spans)
	between := charge(l.spans, l.waits, call.Start, call.End)

	var b book
	for i, rest := 0, l.waits; i < len(l.spans); i++ {
		n := 0 // waits are in the order of the images they belong to
		for n < len(rest) && rest[n].span == i {
			n++
		}
		l.starved += starvation(&l.spans[i], rest[:n])
		b.image(&l.spans[i], rest[:n])
		rest = rest[n:]
	}
	b.add(Part{Kind: Between, Time: time.Duration(between)})
	return b.sorted(), l
}

// ledger is what the parts of a call's time were made of.
type ledger struct {
	spans []span
	waits []wait
	// starved is how long the innermost image waited for a CPU, at the most.
	starved time.Duration
}

// starvation is how long an image waited for a CPU while it was the innermost, at the most:
// its threads wait side by side, also while one of them waits for a lock.
func starvation(s *span, waits []wait) time.Duration {
	free := s.own
	for i := range waits {
		if w := &waits[i]; w.rank < strong || w.rank == requesting {
			free += w.own
		}
	}
	return time.Duration(min(s.image.RunDelay, free))
}

// book adds up parts of one kind and name.
type book struct {
	parts []Part
	most  []time.Duration // the longest one of each
	index map[entry]int
}

type entry struct {
	kind PartKind
	name string
}

func (b *book) add(p Part) {
	if b.index == nil {
		b.index = map[entry]int{}
	}
	key := entry{p.Kind, p.Name}
	i, known := b.index[key]
	if !known {
		b.index[key] = len(b.parts)
		b.parts, b.most = append(b.parts, p), append(b.most, p.Time)
		return
	}
	all := &b.parts[i]
	all.Time += p.Time
	all.Count += p.Count
	if p.Time > b.most[i] {
		all.In, all.Detail, b.most[i] = p.In, p.Detail, p.Time
	}
}

func (b *book) sorted() []Part {
	all := slices.DeleteFunc(b.parts, func(p Part) bool { return p.Time <= 0 })
	slices.SortFunc(all, func(a, b Part) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// image charges what an image was the innermost for: s.own without a known wait, and the
// waits that have a share of it.
func (b *book) image(s *span, waits []wait) {
	if s.agent != nil {
		b.agent(s, waits)
		return
	}
	if s.image.Run == nil {
		name := s.image.Name
		if s.outer != "" && s.outer != name {
			name = s.outer + " > " + name
		}
		b.add(Part{Kind: Commands, Name: name, Time: time.Duration(s.own), Count: 1})
		for i := range waits {
			b.wait(&waits[i])
		}
		return
	}
	// CPU and run delay cover the whole run, also while a command ran beside it, so they
	// can explain no more than they are. In a request the kernel worked, mostly.
	cpu := s.image.CPU + s.image.RunDelay
	for i := range waits {
		if w := &waits[i]; w.rank == requesting || w.rank == inCall {
			cpu -= w.own
		}
	}
	cpu = max(0, cpu)
	computed := min(s.own, cpu)
	cpu -= computed

	// The weakest evidence yields first to what was computed beside it.
	for rank := range strong {
		for i := range waits {
			if w := &waits[i]; w.rank == rank {
				beside := min(w.own, cpu)
				cpu, computed, w.own = cpu-beside, computed+beside, w.own-beside
			}
		}
	}
	for i := range waits {
		b.wait(&waits[i])
	}
	plugin := s.image.Run.Plugin
	b.add(Part{Kind: Plugins, Name: plugin, Time: time.Duration(computed), Count: 1})
	rest := b.short(s, s.own-min(s.own, computed), waits)
	b.add(Part{Kind: Unexplained, Name: plugin, Time: time.Duration(rest), Count: 1})
}

// agent charges what a server was the innermost for: not what it ran, but what it waited
// for or computed itself.
func (b *book) agent(s *span, waits []wait) {
	for i := range waits {
		b.wait(&waits[i])
	}
	b.add(Part{
		Kind: Agents, Name: Peer(s.agent), In: s.plugin, Time: time.Duration(s.own), Count: 1,
		Detail: doing(s.agent.Work),
	})
}

// doing says what a server does that runs nothing and asks for nothing.
func doing(w *timeline.Work) string {
	switch took := w.Own.End - w.Own.Start; {
	case w.Gone != 0:
		return "which ended meanwhile"
	case took > 0 && w.CPU >= took/2:
		return "which is on CPU"
	case w.Channel != "":
		return "which waits in " + w.Channel
	}
	return ""
}

func (b *book) wait(w *wait) {
	if w.own <= 0 {
		return
	}
	p := w.part
	p.Time = time.Duration(w.own)
	b.add(p)
}

// short charges what is left to waits that were too short to be kept each, as far as they
// reach.
func (b *book) short(s *span, rest int64, waits []wait) int64 {
	all := &s.image.Tallies
	queries, changes, settings := all[timeline.FactQuery], all[timeline.FactChange], all[timeline.FactSetting]
	kept := [ranks]int64{}
	for i := range waits {
		w := &waits[i]
		kept[w.rank] += w.end - w.start
	}
	for _, t := range []struct {
		rank int
		all  timeline.Tally
		part Part
	}{
		{fileLock, all[timeline.FactLock], Part{Kind: Locks}},
		{mutex, all[timeline.FactMutex], Part{Kind: KernelLocks}},
		{requesting, timeline.Tally{Count: queries.Count, Time: queries.Time + changes.Time + settings.Time}, Part{Kind: Network, In: s.image.Run.Plugin}},
	} {
		some := min(rest, max(0, t.all.Time-kept[t.rank]))
		t.part.Time, t.part.Count = time.Duration(some), t.all.Count
		b.add(t.part)
		rest -= some
	}
	return rest
}
