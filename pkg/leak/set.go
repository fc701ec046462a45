package leak

import (
	"cmp"
	"slices"
	"strings"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

// Set returns the things that an ADD set in the node's network namespace, without those that it removed again.
func Set(call *model.Call) (set []string) {
	type change struct {
		at         int64
		thing, dev string
		gone       bool
	}
	home := call.Runs[0].NetNS.Key
	var all []change
	for _, run := range call.Runs {
		run.Walk(func(im *model.Image) {
			if im.Attribution != nil && im.Attribution.Evidence == model.Candidate {
				return
			}
			for f, r := range model.Each[*model.Request](im.Facts) {
				doubtful := f.Attribution != nil && f.Attribution.Evidence == model.Candidate
				if doubtful || r.Query() || r.Failed() || r.NetNS.Key != home {
					continue
				}
				moves := r.Interface.NetNS.Key != "" && r.Interface.NetNS.Key != home
				all = append(all, change{f.When.Start, thing(r), r.On, moves || r.Verb == event.VerbDelete})
			}
		})
	}
	slices.SortStableFunc(all, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	var left []change
	for _, c := range all {
		left = slices.DeleteFunc(left, func(known change) bool {
			return known.thing == c.thing || c.gone && c.thing == "" && known.dev == c.dev // the interface
		})
		if !c.gone && c.thing != "" {
			left = append(left, c)
		}
	}
	for _, c := range left {
		set = append(set, c.thing)
	}
	return set
}

// thing names the object of a request; empty if it is of another kind, or its interface is unknown.
func thing(r *model.Request) string {
	switch {
	case r.Protocol != "rtnetlink":
	case r.Object == event.ObjectRoute && r.Route != "":
		return Route(r.Route, r.Table)
	case r.Object == event.ObjectRule && (r.Address != "" || r.Route != "" || r.Interface.Name != ""):
		return Rule(r.Address, r.Route, r.Interface.Name, r.Table)
	case r.Object == event.ObjectAddress && r.On != "" && r.Address != "":
		return Address(r.Address, r.On)
	case r.Object == event.ObjectLink && r.On != "" && r.Under != "" && r.Verb != event.VerbDelete:
		return Port(r.On, r.Under)
	}
	return ""
}

// Route names a route to a prefix or "default". Table is empty for main.
func Route(to, table string) string { return words("route "+to, "table", table) }

// Rule names a rule of routing; each part but table may be empty.
func Rule(from, to, dev, table string) string {
	return words("rule", "from", from, "to", to, "dev", dev, "lookup", table)
}

// Address names an interface's address.
func Address(prefix, dev string) string { return words("address "+prefix, "dev", dev) }

// Port names an interface that is a port of a bridge or bond.
func Port(name, master string) string { return words("port "+name, "of", master) }

func words(said string, pairs ...string) string {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			said += " " + pairs[i] + " " + pairs[i+1]
		}
	}
	return strings.TrimSpace(said)
}
