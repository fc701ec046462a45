package digest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/cniscope/cniscope/pkg/text"
)

const (
	// findingsMost bounds kinds of findings (doctor has 40 checks), linesMost evidence and remedy.
	findingsMost = 500
	// newMost bounds the new kinds of a node, which leaves room for the others'.
	newMost    = 60
	linesMost  = 20
	lineLength = 1024
)

// Level is the severity of a finding.
type Level string

// Severities of findings.
const (
	Problem Level = "problem"
	Warning Level = "warning"
	Note    Level = "note"
)

// Report is the needed part of docs/schemas/doctor.json, since pkg/doctor only builds for a node.
type Report struct {
	Findings List[Found] `json:"findings"`
	Checks   List[Check] `json:"checks"`
}

// Check is one check of one node.
type Check struct {
	Name   string `json:"name"`
	State  string `json:"state"`
	Reason string `json:"reason"`
}

// Found is one finding of one node.
type Found struct {
	Check    string   `json:"check"`
	Level    Level    `json:"level"`
	Summary  string   `json:"summary"`
	Evidence []string `json:"evidence"`
	Remedy   []string `json:"remedy"`
}

const uncheckedState = "could not check"

// Findings groups similar findings of many nodes.
type Findings struct {
	kinds     map[string]*Finding
	unchecked map[string]*Unchecked
	examined  int
	room      int // for new kinds of the node that is being added
	Left      int
}

// Finding is one of some nodes.
type Finding struct {
	Check    string   `json:"check"`
	Level    Level    `json:"level"`
	Summary  string   `json:"summary"`
	Evidence []string `json:"evidence"`
	Remedy   []string `json:"remedy"`
	Nodes    []string `json:"nodes"`
	Differs  bool     `json:"differs,omitempty"`
}

// Unchecked is a check that failed to run.
type Unchecked struct {
	Check  string   `json:"check"`
	Reason string   `json:"reason"`
	Nodes  []string `json:"nodes"`
}

// UnmarshalReport decodes doctor -o json.
func UnmarshalReport(document []byte) (r Report, err error) {
	if err := json.Unmarshal(document, &r); err != nil {
		return r, fmt.Errorf("its report cannot be read: %w", err)
	}
	return r, nil
}

// Add adds one node's report.
func (f *Findings) Add(node string, r Report) {
	if f.kinds == nil {
		f.kinds, f.unchecked = map[string]*Finding{}, map[string]*Unchecked{}
	}
	node = text.Clean(node, text.Bound)
	f.examined++
	f.room = newMost
	for _, found := range r.Findings {
		f.add(node, found)
	}
	for _, check := range r.Checks {
		if check.State != uncheckedState {
			continue
		}
		key := check.Name + "\n" + shape(check.Reason, node)
		u := f.unchecked[key]
		if u == nil {
			if f.room == 0 || len(f.unchecked) >= findingsMost {
				f.Left++
				continue
			}
			f.room--
			u = &Unchecked{Check: text.Clean(check.Name, text.Bound)}
			f.unchecked[key] = u
		}
		if len(u.Nodes) == 0 || node < slices.Min(u.Nodes) {
			u.Reason = text.Clean(check.Reason, lineLength)
		}
		if n := len(u.Nodes); n == 0 || u.Nodes[n-1] != node { // a node's checks are consecutive
			u.Nodes = append(u.Nodes, node)
		}
	}
}

func (f *Findings) add(node string, found Found) {
	switch found.Level {
	case Problem, Warning, Note:
	default:
		found.Level = Warning // of a newer version
	}
	key := string(found.Level) + "\n" + found.Check + "\n" + shape(found.Summary, node)
	kind := f.kinds[key]
	if kind == nil {
		if f.room == 0 || len(f.kinds) >= findingsMost {
			f.Left++
			return
		}
		f.room--
		kind = &Finding{Check: text.Clean(found.Check, text.Bound), Level: found.Level}
		f.kinds[key] = kind
	}
	summary := text.Clean(found.Summary, lineLength)
	kind.Differs = kind.Differs || len(kind.Nodes) > 0 && kind.Summary != summary
	if len(kind.Nodes) == 0 || node < slices.Min(kind.Nodes) {
		kind.Summary, kind.Evidence, kind.Remedy = summary, cleanLines(found.Evidence), cleanLines(found.Remedy)
	}
	if !slices.Contains(kind.Nodes, node) {
		kind.Nodes = append(kind.Nodes, node)
	}
}

// Sorted returns problems first, then by number of nodes.
func (f *Findings) Sorted() (all []Finding) {
	all = []Finding{}
	for _, kind := range f.kinds {
		slices.Sort(kind.Nodes)
		all = append(all, *kind)
	}
	slices.SortFunc(all, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(slices.Index(levels(), a.Level), slices.Index(levels(), b.Level)), cmp.Compare(len(b.Nodes),
				len(a.Nodes)),
			cmp.Compare(a.Check, b.Check), cmp.Compare(a.Summary, b.Summary))
	})
	return all
}

// Unmade returns checks that failed to run.
func (f *Findings) Unmade() (all []Unchecked) {
	all = []Unchecked{}
	for _, u := range f.unchecked {
		slices.Sort(u.Nodes)
		all = append(all, *u)
	}
	slices.SortFunc(all, func(a, b Unchecked) int {
		return cmp.Or(cmp.Compare(len(b.Nodes), len(a.Nodes)), cmp.Compare(a.Check, b.Check), cmp.Compare(a.Reason, b.Reason))
	})
	return all
}

// Count returns the findings except notes.
func (f *Findings) Count() (n int) {
	for _, kind := range f.kinds {
		if kind.Level != Note {
			n++
		}
	}
	return n
}

func levels() []Level { return []Level{Problem, Warning, Note} }

// own matches a node's addresses, ids, times, sizes.
var own = regexp.MustCompile(`(?i)\b[0-9a-f]*[0-9][0-9a-f]*([.:][0-9a-f]+)*`)

func shape(sentence, node string) string {
	if node != "" {
		sentence = name.ReplaceAllStringFunc(sentence, func(word string) string {
			if strings.TrimRight(word, ".") == node {
				return "NODE"
			}
			return word
		})
	}
	return own.ReplaceAllString(sentence, "#")
}

var name = regexp.MustCompile(`[0-9A-Za-z.-]+`)

func cleanLines(lines []string) []string {
	clean := []string{}
	for _, line := range lines[:min(len(lines), linesMost)] {
		clean = append(clean, text.Clean(line, lineLength))
	}
	return clean
}
