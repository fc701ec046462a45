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
	namesMost = 200
	// nodesMost is twice Kubernetes' limit.
	nodesMost   = 10_000
	other       = "other"
	unexplained = "unexplained"
)

// Top counts problems by cause, node and plugin.
type Top struct {
	causes, nodes, plugins map[string]*Row
	Problems, Of           int
}

// Row is a cause, node or plugin.
type Row struct {
	Name       string        `json:"name"`
	Operations int           `json:"operations"`
	Slow       int           `json:"slow"`
	Failed     int           `json:"failed"`
	Hung       int           `json:"hung"`
	Nodes      int           `json:"nodes,omitempty"`
	Time       time.Duration `json:"time_ns"`
	Worst      control.Line  `json:"worst"`

	seen string // latest node; its lines are consecutive
}

// Add adds a node's lines once; of counts all its operations.
func (t *Top) Add(node string, lines []control.Line, of int) {
	if t.causes == nil {
		t.causes, t.nodes, t.plugins = map[string]*Row{}, map[string]*Row{}, map[string]*Row{}
	}
	node = text.Clean(node, text.Bound)
	t.Of += of
	for _, line := range last(lines) {
		if line.Result == control.Ordinary || line.Result == control.Late {
			continue
		}
		line = Line(line)
		line.Node = node // whatever the node claims
		t.Problems++
		row(t.causes, namesMost, cmp.Or(line.Cause, unexplained)).add(line)
		row(t.nodes, nodesMost, node).add(line)
		row(t.plugins, namesMost, cmp.Or(line.Plugin, "unknown")).add(line)
	}
	t.Of = max(t.Of, t.Problems)
}

func last(lines []control.Line) []control.Line {
	type operation struct{ trace, sandbox, command, ifname string }
	over := map[operation]bool{}
	of := func(l control.Line) operation { return operation{l.TraceID, l.Sandbox, l.Command, l.IfName} }
	for _, l := range lines {
		if l.Result != control.Hung && l.Result != control.Late {
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

// Causes returns the causes, most operations first.
func (t *Top) Causes() []Row { return sorted(t.causes) }

// Nodes returns the nodes, most operations first.
func (t *Top) Nodes() []Row { return sorted(t.nodes) }

// Plugins returns the plugins, most operations first.
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

// Line returns a line with printable texts.
func Line(l control.Line) control.Line { return l.Clean(text.Bound, lineLength) }

// Call returns a call with printable texts.
func Call(c control.Call) control.Call {
	for _, s := range []*string{
		&c.Namespace, &c.Pod, &c.ContainerID, &c.Command, &c.IfName, &c.Plugin, &c.Runs, &c.State,
		&c.Waits, &c.Asks, &c.Agent, &c.Polls, &c.Verdict,
	} {
		*s = text.Clean(*s, text.Bound)
	}
	return c
}
