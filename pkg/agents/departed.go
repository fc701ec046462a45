package agents

import (
	"slices"

	"github.com/cniscope/cniscope/pkg/event"
)

// departedMax bounds the agents that are remembered after their end: for what is told late of why, and for
// who answers in their place.
const departedMax = 16

// departed are agents that ended while somebody called them, the latest last.
type departed []departure

type departure struct {
	process event.Process
	*agent
}

func (d *departed) add(process event.Process, a *agent) {
	if len(a.recent) == 0 {
		return
	}
	if len(*d) >= departedMax {
		*d = slices.Delete(*d, 0, 1)
	}
	*d = append(*d, departure{process, a})
}

func (d departed) of(process event.Process) *agent {
	for _, one := range d {
		if one.process == process {
			return one.agent
		}
	}
	return nil
}

// succeed says that the agent of c answers in the place of one that ended: it has its address, or its name.
func (d departed) succeed(c *connection) {
	if !c.Answered {
		return
	}
	back := c.fact.When.Start
	if c.Exchange != nil { // of which only the end is certainly its own
		back = c.fact.When.End
	}
	for _, one := range d {
		for _, before := range one.recent {
			w := before.Work
			same := before.Network == c.Network && before.Address != "" && before.Address == c.Address || w.Own.Name != "" && w.Own.Name == c.Agent.Name
			if w.Gone != 0 && w.Successor == nil && same && c.Agent.Process != one.process {
				successor := *c.Agent
				w.Successor, w.Back = &successor, back
			}
		}
	}
}

// dismiss forgets the connections of an operation that is closed.
func (d *departed) dismiss(of func(*connection) bool) {
	*d = slices.DeleteFunc(*d, func(one departure) bool {
		one.recent = slices.DeleteFunc(one.recent, of)
		return len(one.recent) == 0
	})
}
