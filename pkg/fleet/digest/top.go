package digest

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/text"
)

const (
	// namesMost is how many causes, and how many plugins, are told apart: a node chooses its plugins' names.
	// What comes after is counted as other.
	namesMost = 200
	// nodesMost is how many nodes are told apart: twice as many as Kubernetes is made for (5,000).
	nodesMost = 10_000
	other     = "other"
	// unexplained stands for the cause of what has none.
	unexplained = "unexplained"
)

// Top counts what was slow, failed or hung, by cause, node and plugin.
type Top struct {
	causes, nodes, plugins map[string]*Row
	// Problems are the operations counted, Of all that there were in the time.
	Problems, Of int
}

// Row is what one cause, node or plugin has cost.
type Row struct {
	Name       string `json:"name"`
	Operations int    `json:"operations"`
	Slow       int    `json:"slow"`
	Failed     int    `json:"failed"`
	Hung       int    `json:"hung"`
	// Nodes is on how many nodes; 0 where no node was named.
	Nodes int `json:"nodes,omitempty"`
	// Time is that of these operations, all together.
	Time time.Duration `json:"time_ns"`
	// Worst is the one that took longest.
	Worst control.Line `json:"worst"`

	seen string // the node counted last: a node's lines come together
}

// Add takes one node's lines, of what was not ordinary; of is how many operations there were in all. Each node
// is added once.
func (t *Top) Add(node string, lines []control.Line, of int) {
	if t.causes == nil {
		t.causes, t.nodes, t.plugins = map[string]*Row{}, map[string]*Row{}, map[string]*Row{}
	}
	node = text.Clean(node, text.Bound)
	t.Of += of
	for _, line := range last(lines) {
		if line.Result == control.Ordinary {
			continue
		}
		line = Line(line)
		line.Node = node // whatever the node says it is called
		t.Problems++
		row(t.causes, namesMost, cmp.Or(line.Cause, unexplained)).add(line)
		row(t.nodes, nodesMost, node).add(line)
		row(t.plugins, namesMost, cmp.Or(line.Plugin, "unknown")).add(line)
	}
	t.Of = max(t.Of, t.Problems)
}

// last leaves out the lines of operations that hung and have come to an end: they have another line.
func last(lines []control.Line) []control.Line {
	type operation struct{ trace, sandbox, command, ifname string }
	over := map[operation]bool{}
	of := func(l control.Line) operation { return operation{l.TraceID, l.Sandbox, l.Command, l.IfName} }
	for _, l := range lines {
		if l.Result != control.Hung {
			over[of(l)] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(lines), func(l control.Line) bool {
		return l.Result == control.Hung && l.TraceID != "" && over[of(l)]
	})
}

func row(rows map[string]*Row, most int, name string) *Row {
	if rows[name] == nil && len(rows) >= most {
		name = other
	}
	if rows[name] == nil {
		rows[name] = &Row{Name: name}
	}
	return rows[name]
}

func (r *Row) add(line control.Line) {
	r.Operations++
	switch line.Result {
	case control.Failed:
		r.Failed++
	case control.Hung:
		r.Hung++
	default:
		r.Slow++
	}
	if r.seen != line.Node {
		r.seen = line.Node
		r.Nodes++
	}
	r.Time += max(line.Duration, 0)
	if line.Duration >= r.Worst.Duration {
		r.Worst = line
	}
}

// Causes are the rows of causes, those of most operations first; Nodes and Plugins likewise.
func (t *Top) Causes() []Row { return sorted(t.causes) }

// Nodes are the nodes that had any.
func (t *Top) Nodes() []Row { return sorted(t.nodes) }

// Plugins are the plugins that had any.
func (t *Top) Plugins() []Row { return sorted(t.plugins) }

func sorted(rows map[string]*Row) []Row {
	all := []Row{}
	for r := range maps.Values(rows) {
		all = append(all, *r)
	}
	slices.SortFunc(all, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.Operations, a.Operations), cmp.Compare(b.Time, a.Time), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// Line is a line whose texts are safe to print.
func Line(l control.Line) control.Line {
	for _, s := range []*string{
		&l.Node, &l.Namespace, &l.Pod, &l.PodUID, &l.Sandbox, &l.Command, &l.IfName, &l.Network, &l.Plugin, &l.Cause, &l.TraceID, (*string)(&l.Result),
	} {
		*s = text.Clean(*s, text.Bound)
	}
	for _, s := range []*string{&l.Verdict, &l.Own, &l.Remedy, &l.Error} {
		*s = text.Clean(*s, lineLength)
	}
	return l
}

// Call is a call under way whose texts are safe to print.
func Call(c control.Call) control.Call {
	for _, s := range []*string{&c.Namespace, &c.Pod, &c.ContainerID, &c.Command, &c.IfName, &c.Plugin, &c.Runs, &c.State, &c.Waits, &c.Asks, &c.Agent} {
		*s = text.Clean(*s, text.Bound)
	}
	return c
}
