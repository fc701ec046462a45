package pods

import (
	"time"

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

// soon is the longest time from boot to the runtime's start, and from that to cniscope's, in one bring-up.
const soon = int64(10 * time.Minute)

type outages struct {
	now  *model.Outage
	over []model.Outage
	// since is the start of a runtime whose network was not ready yet.
	since   int64
	pending *model.BringUp
	came    []model.BringUp
}

// Registered notes a runtime's start.
func (o *outages) Registered(r *event.Registered) {
	if r.Since != 0 && (o.pending == nil || o.pending.Since != r.Since) {
		o.since, o.pending = r.Since, nil
	}
}

func (o *outages) bringUp() {
	if o.since != 0 && o.now != nil && o.now.Start-o.since < soon {
		o.pending = &model.BringUp{Outage: *o.now, Since: o.since, From: o.since}
		if o.since < soon {
			o.pending.From = 0
		}
	}
	o.since = 0
}

func (o *outages) started(s *model.Start) {
	switch up := o.pending; {
	case up == nil || s.Request != model.RunPodSandbox || s.To < up.End:
	case s.Reported == 0:
		up.Failed++
	default:
		up.First = *s
		o.came, o.pending = append(o.came, *up), nil
	}
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
		o.bringUp()
		o.now = nil
	default:
		o.since = 0
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
