package judge

import (
	"fmt"

	"github.com/cniscope/cniscope/pkg/model"
)

// rank says how surely a wait explains what its image did meanwhile. Of the waits that were
// under way at one instant, the highest in rank is charged.
type rank int

// The ranks. Those below rankCall are weak: one thread may sleep, or have a connection open,
// while another computes.
const (
	rankPoll rank = iota
	rankSleep
	rankFile
	rankAgent
	rankDAD
	rankCall
	rankNetwork
	rankMutex
	rankLock
	rankHalt
	ranks
)

// weak reports whether the image may have been computing meanwhile.
func (r rank) weak() bool { return r < rankCall }

// charging is how facts of one kind are charged.
type charging struct {
	rank rank
	// part describes what the time went into; its Time and Count are the caller's. Nil means
	// that facts of this kind are not charged one by one.
	part func(*span, model.What) Part
	// held: others hold the image up, so that it counts even for a command.
	held bool
}

// chargings has an entry for each kind of fact. Sleeps and polls are charged by the intervals
// that the timeline joins them to (model.Activity).
var chargings = [model.FactKinds]charging{
	model.FactLock:       {rank: rankLock, part: lockPart, held: true},
	model.FactMutex:      {rank: rankMutex, part: mutexPart, held: true},
	model.FactSleep:      {rank: rankSleep},
	model.FactPoll:       {rank: rankPoll},
	model.FactCall:       {rank: rankCall, part: callPart},
	model.FactChange:     {rank: rankNetwork, part: requestPart},
	model.FactQuery:      {rank: rankNetwork, part: requestPart},
	model.FactSetting:    {rank: rankNetwork, part: settingPart},
	model.FactMount:      {rank: rankCall, part: mountPart, held: true},
	model.FactConnection: {rank: rankAgent, part: agentPart},
	model.FactDetection:  {rank: rankDAD, part: detectionPart},
	model.FactMissing:    {rank: rankFile, part: polledPart},
	model.FactHalt:       {rank: rankHalt, part: haltPart, held: true},
}

func lockPart(s *span, what model.What) Part {
	w := what.(*model.Wait)
	part := Part{Kind: Locks, Name: w.Path, Detail: holder(w), In: commandOf(s)}
	if part.Name == "" {
		part.Name = w.Name
	}
	return part
}

func mutexPart(s *span, what model.What) Part {
	w := what.(*model.Wait)
	return Part{Kind: KernelLocks, Name: w.Name, Detail: holder(w), In: commandOf(s)}
}

// commandOf is the name of a command or an agent; empty for a run.
func commandOf(s *span) string {
	if s.image.Run != nil {
		return ""
	}
	return s.image.Name
}

func callPart(s *span, what model.What) Part {
	return Part{Kind: SystemCalls, Name: what.(*model.Wait).Name, In: s.waiter()}
}

func requestPart(s *span, what model.What) Part {
	return Part{Kind: Network, Name: what.(*model.Request).Name, In: s.waiter()}
}

func settingPart(s *span, _ model.What) Part {
	return Part{Kind: Network, Name: "sysctl", In: s.waiter()}
}

func agentPart(s *span, what model.What) Part {
	c := what.(*model.Connection)
	part := Part{Kind: Agents, Name: Peer(c), In: s.waiter(), peer: c}
	if s.agent != nil {
		part.Name, part.In, part.Asked = peerName(c), s.plugin, onBehalf(s.agent, *s)
	}
	if c.Error != "" && c.Exchange == nil {
		part.Detail = fmt.Sprintf("refused %d times: %s", c.Tries, c.Error)
	}
	return part
}

func detectionPart(s *span, what model.What) Part {
	return Part{Kind: DAD, Name: s.waiter(), In: s.waiter(), Detail: detected(what.(*model.Detection))}
}

func haltPart(s *span, what model.What) Part {
	h := what.(*model.Halt)
	of := "plugin "
	if s.image.Run == nil {
		of = "command "
	}
	return Part{Kind: Halts, Name: of + s.waiter() + " was " + howHalted(h.State, h.By)}
}

// wait is a time in which an image waited for something, clipped to its span.
type wait struct {
	rank       rank
	span       int // index of the span that it belongs to
	start, end int64
	own        int64 // ns that are charged to it
	candidate  bool  // as of a span
	part       Part  // what it is charged to
	// what it was; nil for a joined interval.
	what model.What
}

// connection returns the connection that was waited for; nil if it was something else.
func (w *wait) connection() *model.Connection {
	c, _ := w.what.(*model.Connection)
	return c
}

// waitsIn reports whether a fact of an image is charged one by one: not what an agent asks others (see behind),
// and no system call of one that others wait for, whose state says more.
func (s *span) waitsIn(f *model.Fact) bool {
	if c, is := f.What.(*model.Connection); is {
		return c.Exchange == nil && (c.Exchanged == 0 || s.agent == nil)
	}
	return f.Kind() != model.FactCall || s.agent == nil || s.via == ""
}

// waitsOf lists what the images of spans waited for, in the order of the spans.
func waitsOf(spans []span) []wait {
	n := 0
	for i := range spans {
		n += len(spans[i].image.Facts) + len(spans[i].image.Asleep) + len(spans[i].image.Polling)
	}
	if n == 0 {
		return nil
	}
	all := make([]wait, 0, n)
	for i := range spans {
		s := &spans[i]
		if s.end <= s.start {
			continue
		}
		add := func(r rank, when model.Interval, part Part, what model.What, candidate bool) {
			if start, end := max(when.Start, s.start), min(when.End, s.end); start < end {
				part.Count = 1
				all = append(all, wait{rank: r, span: i, start: start, end: end, part: part, what: what, candidate: candidate})
			}
		}
		for _, f := range s.image.Facts {
			c, is := f.What.(*model.Connection)
			if is && c.Work == nil {
				for _, at := range s.behind.when(c) {
					add(rankAgent, at, agentPart(s, c), c, s.candidate)
				}
			}
			if c := &chargings[f.Kind()]; c.part != nil && (c.held || !s.command()) && s.waitsIn(f) {
				add(c.rank, f.When, c.part(s, f.What), f.What, doubted(s.candidate, f.Attribution))
			}
		}
		if s.command() {
			continue
		}
		for _, when := range s.image.Asleep {
			add(rankSleep, when, Part{Kind: Sleep, Name: s.waiter()}, nil, s.candidate)
		}
		for _, when := range s.image.Polling {
			add(rankPoll, when, Part{Kind: Waiting, Name: s.waiter()}, nil, s.candidate)
		}
	}
	return all
}
