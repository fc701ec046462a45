package active

import (
	"slices"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

// departedMax bounds exited agents, stored for late reports of the reason and for their successors.
const departedMax = 16

type departed []departure

type departure struct {
	process event.Process
	*agent
}

func (d *departed) add(process event.Process, a *agent) {
	if len(a.recent) > 0 {
		*d = model.Latest(*d, departedMax, departure{process, a})
	}
}

func (d departed) of(process event.Process) *agent {
	for _, one := range d {
		if one.process == process {
			return one.agent
		}
	}
	return nil
}

func (d departed) succeed(c *connection) {
	if !c.Answered {
		return
	}
	back := c.fact.When.Start
	if c.Exchange != nil { // only its end is certain
		back = c.fact.When.End
	}
	for _, one := range d {
		for _, before := range one.recent {
			w := before.Work
			same := before.Network == c.Network && before.Address != "" && before.Address == c.Address ||
				w.Own.Name != "" && w.Own.Name == c.Agent.Name
			if w.Gone != 0 && w.Successor == nil && same && c.Agent.Process != one.process {
				successor := *c.Agent
				w.Successor, w.Back = &successor, back
			}
		}
	}
}

func (d *departed) dismiss(of func(*connection) bool) {
	*d = slices.DeleteFunc(*d, func(one departure) bool {
		one.recent = slices.DeleteFunc(one.recent, of)
		return len(one.recent) == 0
	})
}
