// Package digest aggregates nodes' answers. It is pure, bounded, and cleans texts: a node may be hostile.
package digest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cniscope/cniscope/pkg/text"
)

// Nodes counts queried and answering nodes.
type Nodes struct {
	Asked    int       `json:"asked"`
	Answered int       `json:"answered"`
	Missing  []Missing `json:"missing"`
}

// Missing is a node without an answer.
type Missing struct {
	Node   string `json:"node"`
	Reason string `json:"reason"`
}

// Answer counts one node's answer or error.
func (n *Nodes) Answer(node string, err error) {
	n.Asked++
	if err == nil {
		n.Answered++
		return
	}
	lines := strings.Split(err.Error(), "\n")
	for i, line := range lines {
		lines[i] = text.Clean(line, 2*text.Bound)
	}
	n.Missing = append(n.Missing, Missing{text.Clean(node, text.Bound), strings.Join(lines[:min(len(lines), 2)], "\n")})
}

// Sorted returns Missing by name, never nil.
func (n Nodes) Sorted() Nodes {
	n.Missing = slices.SortedFunc(slices.Values(n.Missing), func(a, b Missing) int { return cmp.Compare(a.Node, b.Node) })
	if n.Missing == nil {
		n.Missing = []Missing{}
	}
	return n
}

// Lines returns one line per reason.
func (n Nodes) Lines() (lines []string) {
	nodes := map[string][]string{}
	for _, m := range n.Sorted().Missing {
		nodes[m.Reason] = append(nodes[m.Reason], m.Node)
	}
	for _, reason := range slices.SortedFunc(maps.Keys(nodes), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(nodes[b]), len(nodes[a])), cmp.Compare(a, b))
	}) {
		between := ": "
		if strings.Contains(reason, "\n") {
			between = "\nwithout an answer: "
		}
		lines = append(lines, fmt.Sprintf("%d of %s did not answer: %s%s%s",
			len(nodes[reason]), Count(n.Asked, "node"), reason, between, strings.Join(nodes[reason], ", ")))
	}
	return lines
}

// Count returns a number with its noun.
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%s %ss", Number(n), what)
}

// Number formats thousands as 5,200.
func Number(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", Number(n/1000), n%1000)
}

// Some joins most names and counts the rest.
func Some(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
