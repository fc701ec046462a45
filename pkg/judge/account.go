package judge

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/cniscope/cniscope/pkg/timeline"
)

// PartKind is what kind of thing a call's time went into.
type PartKind string

// The kinds of parts. Every instant of a call belongs to exactly one: to the innermost
// command that ran, else to the innermost plugin, else to nobody.
const (
	// Commands: an external command was running.
	Commands PartKind = "command"
	// Plugins: a plugin itself was running on a CPU or waiting for one.
	Plugins PartKind = "plugin"
	// Between: no plugin was running; the runtime had the word.
	Between PartKind = "between runs"
	// Unexplained: a plugin was there, ran no command and was not on a CPU.
	Unexplained PartKind = "unexplained"
)

// Part is a share of a call's wall time.
type Part struct {
	Kind PartKind
	// Name is the command's or the plugin's; empty for Between. What a command ran is
	// named with it: "policyctl > sleep".
	Name string
	Time time.Duration
	// Count is how many images of that name there were; 0 for Between.
	Count int
}

// String says it as a person would: "command iptables (9 times)".
func (p Part) String() string {
	switch p.Kind {
	case Between:
		return "between plugins, in the runtime"
	case Unexplained:
		return "unexplained, inside plugin " + p.Name
	}
	if p.Count > 1 {
		return fmt.Sprintf("%s %s (%d times)", p.Kind, p.Name, p.Count)
	}
	return fmt.Sprintf("%s %s", p.Kind, p.Name)
}

// account divides the wall time of a call.
func account(call *timeline.Call) []Part {
	spans := flatten(call)
	between := charge(spans, call.Start, call.End)

	type key struct {
		kind PartKind
		name string
	}
	var all []Part
	index := map[key]int{}
	add := func(kind PartKind, name string, d int64, n int) {
		i, known := index[key{kind, name}]
		if !known {
			i = len(all)
			index[key{kind, name}] = i
			all = append(all, Part{Kind: kind, Name: name})
		}
		all[i].Time += time.Duration(d)
		all[i].Count += n
	}
	for i := range spans {
		s := &spans[i]
		if s.image.Run == nil {
			name := s.image.Name
			if s.outer != "" && s.outer != name {
				name = s.outer + " > " + name
			}
			add(Commands, name, s.own, 1)
			continue
		}
		// CPU and run delay cover the whole run, also while a command ran beside it, so
		// they can explain no more than they are.
		explained := min(s.own, s.image.CPU+s.image.RunDelay)
		add(Plugins, s.image.Run.Plugin, explained, 1)
		add(Unexplained, s.image.Run.Plugin, s.own-explained, 1)
	}
	add(Between, "", between, 0)

	all = slices.DeleteFunc(all, func(p Part) bool { return p.Time <= 0 })
	slices.SortFunc(all, func(a, b Part) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return all
}
