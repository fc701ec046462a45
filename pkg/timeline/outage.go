package timeline

import "github.com/cniscope/cniscope/pkg/event"

// Outage is a time in which the node's network was not ready.
type Outage struct {
	Interval
	// Mono and Wall are one instant on both clocks, in ns.
	Mono, Wall int64
	// Reasons are what the runtime said, and Folder what the CNI folder held, each when
	// that changed.
	Reasons []Said
	Folder  []Said
	Runtime event.Runtime
}

// Said is a text and when it was so.
type Said struct {
	At   int64
	Text string
}

// saidMax bounds what is kept of an outage: it may last for ever.
const saidMax = 64

// readiness takes whether the network is ready.
func (t *Timeline) readiness(now int64, r *event.Readiness) {
	switch {
	case !r.Ready && t.outage == nil:
		t.outage = &Outage{Interval: Interval{Start: now, End: now}, Mono: t.mono, Wall: t.wall}
		t.outage.Folder = say(t.outage.Folder, now, files(t.networks))
		fallthrough
	case !r.Ready:
		t.outage.Reasons = say(t.outage.Reasons, now, r.Reason)
	case t.outage != nil:
		t.outage.End, t.outage.Runtime = now, t.runtime
		t.outages = append(t.outages, *t.outage)
		t.outage = nil
	}
}

// Outages returns the outages that are over since it was last asked.
func (t *Timeline) Outages() []Outage {
	over := t.outages
	t.outages = nil
	return over
}

func say(all []Said, at int64, text string) []Said {
	if len(all) >= saidMax || len(all) > 0 && all[len(all)-1].Text == text {
		return all
	}
	return append(all, Said{at, text})
}

// files lists the networks as "10-pods.conflist (pods: bridge, portmap)".
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

// refolder takes what the CNI folder holds now.
func (t *Timeline) refolder(now int64, networks []event.Network) {
	if t.outage != nil {
		t.outage.Folder = say(t.outage.Folder, now, files(networks))
	}
}
