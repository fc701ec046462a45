package judge

import (
	"fmt"

	"github.com/cniscope/cniscope/pkg/model"
)

// rank says how surely a wait explains its image's time. The highest of simultaneous ranks counts.
type rank int

// Ranks below rankCall are weak: another thread may compute during the wait.
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

func (r rank) weak() bool { return r < rankCall }

type charging struct {
	rank rank
	// part says what the time went into, without Time and Count. Nil: facts are not attributed one by one.
	part func(*span, model.What) Part
	// held: it counts even for a command.
	held bool
}

// chargings lists how facts are attributed: sleeps and polls by the joined intervals of model.Activity.
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
	part := Part{Kind: Locks, Name: w.Path, Detail: holder(w), In: commandOf(s.image)}
	if part.Name == "" {
		part.Name = "of unknown path (" + w.Name + ")"
	}
	return part
}

func mutexPart(s *span, what model.What) Part {
	w := what.(*model.Wait)
	return Part{Kind: KernelLocks, Name: w.Name, Detail: holder(w), In: commandOf(s.image)}
}

func commandOf(im *model.Image) string {
	if im.Run != nil {
		return "plugin " + im.Run.Plugin
	}
	return im.Name
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

type wait struct {
	rank       rank
	span       int
	start, end int64
	own        int64 // attributed ns
	candidate  bool
	part       Part
	// nil for a joined interval
	what model.What
}

func (w *wait) connection() *model.Connection {
	c, _ := w.what.(*model.Connection)
	return c
}

// waitsIn excludes facts that count elsewhere: an agent's requests (see behind), and system calls of a process that
// others wait for, whose state says more.
func (s *span) waitsIn(f *model.Fact) bool {
	if c, is := f.What.(*model.Connection); is {
		return c.Exchange == nil && (c.Exchanged == 0 || s.agent == nil)
	}
	if m, is := f.What.(*model.Missing); is && !s.polls(f, m) {
		return false
	}
	return f.Kind() != model.FactCall || s.agent == nil || s.via == ""
}

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
			add(rankSleep, when, Part{Kind: Sleep, Name: s.waiter(), Detail: s.in()}, nil, s.candidate)
		}
		for _, when := range s.image.Polling {
			add(rankPoll, when, Part{Kind: Waiting, Name: s.waiter(), Detail: s.in()}, nil, s.candidate)
		}
	}
	return all
}
