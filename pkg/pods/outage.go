package pods

import (
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

const saidMax = 64

// Node is the state of the node.
type Node struct {
	Runtime    event.Runtime
	Networks   []event.Network
	Mono, Wall int64
}

type outages struct {
	now  *model.Outage
	over []model.Outage
}

func (o *outages) Readiness(now int64, r *event.Readiness, n Node) {
	switch {
	case !r.Ready && o.now == nil:
		o.now = &model.Outage{Interval: model.Interval{Start: now, End: now}, Mono: n.Mono, Wall: n.Wall}
		o.Folder(now, n.Networks)
		fallthrough
	case !r.Ready:
		o.now.Reasons = say(o.now.Reasons, now, r.Reason)
		lack(o.now, now, r)
	case o.now != nil:
		o.now.End, o.now.Runtime = now, n.Runtime
		for i := range o.now.Folder { // the change that ended it is read later
			said := &o.now.Folder[i]
			said.At = min(said.At, now)
		}
		o.over = append(o.over, *o.now)
		o.now = nil
	}
}

func lack(o *model.Outage, now int64, r *event.Readiness) {
	o.Overdue = o.Overdue || r.Overdue
	if r.Missing == "" || len(o.Lacks) >= saidMax || len(o.Lacks) > 0 && o.Lacks[len(o.Lacks)-1].Text == r.Missing {
		return
	}
	o.Lacks = append(o.Lacks, model.Lack{Said: model.Said{At: now, Text: r.Missing}, What: r.Lacks})
}

func say(all []model.Said, at int64, text string) []model.Said {
	if len(all) >= saidMax || len(all) > 0 && all[len(all)-1].Text == text {
		return all
	}
	return append(all, model.Said{At: at, Text: text})
}

func files(networks []event.Network) string {
	list := ""
	for _, n := range networks {
		if list != "" {
			list += "; "
		}
		list += n.File + " (" + n.Name + ":"
		for _, p := range n.Plugins {
			list += " " + p.Type
		}
		list += ")"
	}
	if list == "" {
		return "no network"
	}
	return list
}

func (o *outages) Folder(now int64, networks []event.Network) {
	if o.now != nil {
		o.now.Folder = say(o.now.Folder, now, files(networks))
	}
}
