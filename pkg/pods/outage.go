package pods

import (
	"cmp"
	"slices"
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
	// since is the first start of a runtime whose network was never ready.
	since   int64
	ready   bool
	pending *model.BringUp
}

// Registered notes a runtime's start.
func (o *outages) Registered(r *event.Registered) {
	if r.Since != 0 && !o.ready && (o.since == 0 || o.now == nil) {
		o.since = r.Since
	}
}

func (o *outages) bringUp() {
	switch {
	case o.pending != nil:
		again(o.pending, o.now)
	case !o.ready && o.since != 0 && o.since <= o.now.End && o.now.Start-o.since < soon:
		o.pending = &model.BringUp{Outage: *o.now, Since: o.since, From: o.since, Ready: o.now.End}
		if o.since < soon {
			o.pending.From = 0
		}
	}
}

func again(up *model.BringUp, o *model.Outage) {
	pod := model.Lack{Said: model.Said{At: up.End, Text: "until a pod was started"}, What: model.LackPod}
	lacks := append([]model.Lack{pod}, o.Lacks...)
	if len(lacks) == 1 || len(up.Lacks)+len(lacks) > saidMax {
		return
	}
	lacks[1].At = o.Start
	up.Lacks, up.End = append(slices.Clip(up.Lacks), lacks...), o.End
}

// started keeps the earliest of the starts that NRI reported.
func (o *outages) started(s *model.Start) {
	up := o.pending
	if up == nil || s.Reported == 0 || s.To < up.Ready {
		return
	}
	first := &up.First
	if first.To == 0 || cmp.Or(cmp.Compare(s.To, first.To), cmp.Compare(s.ContainerID, first.ContainerID)) < 0 {
		*first = *s
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
		o.now, o.ready = nil, true
	default:
		o.ready = true
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
